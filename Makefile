# Everything runs in .venv, made on first use from the locked requirements.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check docs lint types lock bench clean
.DEFAULT_GOAL := demo

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coremcmc needs Python 3.11 or later; pass PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: $(VENV)/.installed  ## cancelled flights, 298,000 rows; ends with a report
	$(BIN)/coremcmc demo --out demo-output

test: $(VENV)/.installed lint types  ## style, types, and the whole test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 0

check: $(VENV)/.installed lint types  ## the tests that take seconds
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 0 -m "not slow"

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

docs: $(VENV)/.installed  ## the documentation, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/.installed  ## time and memory of an iteration
	$(BIN)/python benchmarks/iteration.py

lock:  ## resolve pyproject.toml anew into requirements.lock (needs uv)
	uv pip compile pyproject.toml --group dev --group build --universal --no-emit-index-url --no-annotate --no-header -o requirements.lock

clean:
	rm -rf $(VENV) demo-output docs/_build
