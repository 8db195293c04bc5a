# Everything runs in .venv, made on first use: for `make demo` from requirements.lock, with what a
# user needs; for the rest from requirements-dev.lock on top.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo test check docs lint types lock bench clean
.DEFAULT_GOAL := demo

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coremcmc needs Python 3.11 or later; pass PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	$(PIP) --no-deps -r requirements-dev.lock
	touch $@

demo: $(VENV)/.installed  ## cancelled flights, 298,000 rows; ends with a report
	$(BIN)/coremcmc demo --out demo-output

test: $(VENV)/.installed-dev lint types  ## style, types, and the whole test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 0

check: $(VENV)/.installed-dev lint types  ## the tests that take seconds
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 0 -m "not slow"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

docs: $(VENV)/.installed-dev  ## the documentation, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/.installed-dev  ## time and memory of an iteration
	$(BIN)/python benchmarks/iteration.py

COMPILE := uv pip compile pyproject.toml --quiet --universal --no-emit-index-url --no-annotate --no-header
lock:  ## resolve pyproject.toml anew into both lock files (needs uv)
	$(COMPILE) --group dev -o requirements-dev.lock
	$(COMPILE) --group demo --group build -c requirements-dev.lock -o requirements.lock

clean:
	rm -rf $(VENV) demo-output docs/_build
