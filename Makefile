# Everything runs in .venv, made on first use: for `make demo` from requirements.lock, with what a
# user needs; for the rest from requirements-dev.lock on top.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := python -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo test check test-lowest test-pythons docs lint types lock bench hooks clean
.DEFAULT_GOAL := demo

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coremcmc needs Python 3.11 or later; pass PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(INSTALL) --no-deps -r requirements.lock
	$(BIN)/$(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	$(BIN)/$(INSTALL) --no-deps -r requirements-dev.lock
	touch $@

demo: $(VENV)/.installed  ## cancelled flights, 298,000 rows; ends with a report
	$(BIN)/coremcmc demo --out demo-output

PYTEST := -m pytest -n 2 --dist loadfile --max-worker-restart 0
test: $(VENV)/.installed-dev lint types  ## style, types, and the whole test suite, with its coverage
	$(BIN)/python $(PYTEST) --durations 10 --cov --cov-report term

check: $(VENV)/.installed-dev lint types  ## the tests that take seconds
	$(BIN)/python $(PYTEST) -m "not slow"

# Each of the following has a virtual environment of its own; QUICK="-k words" runs fewer tests.
test-lowest:  ## the quick tests at the lowest versions that pyproject.toml allows (needs uv)
	uv venv --quiet --no-python-downloads --clear --python 3.11 $(VENV)-lowest
	uv pip install --quiet --python $(VENV)-lowest --resolution lowest-direct -e '.[arviz,examples,notebook,numpyro,pymc]'
	uv pip install --quiet --python $(VENV)-lowest --group test
	$(VENV)-lowest/bin/python $(PYTEST) -m "not slow" $(QUICK)

found = $(shell for p in $(HOME)/.pyenv/versions/$(1).*/bin/python$(1) $$(command -v python$(1)); do $$p -c "" 2>/dev/null && echo $$p && break; done)
test-pythons:  ## the quick tests with Python 3.12 and 3.13, those of them that are found
	$(if $(call found,3.12),$(MAKE) test-python3.12)
	$(if $(call found,3.13),$(MAKE) test-python3.13)

test-python%:
	$(call found,$*) -m venv --clear $(VENV)-$*
	$(VENV)-$*/bin/$(INSTALL) --no-deps -r requirements-dev.lock
	$(VENV)-$*/bin/$(INSTALL) --no-deps --no-build-isolation -e .
	$(VENV)-$*/bin/python $(PYTEST) -m "not slow" $(QUICK)

lint: $(VENV)/.installed-dev
	$(BIN)/codespell
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

docs: $(VENV)/.installed-dev  ## the documentation, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/.installed-dev  ## time and memory of an iteration
	$(BIN)/python benchmarks/iteration.py

COMPILE := uv pip compile pyproject.toml --quiet --universal --no-emit-index-url --no-annotate --no-header
hooks: $(VENV)/.installed-dev  ## style and types before every commit
	$(BIN)/pre-commit install

lock:  ## resolve pyproject.toml anew into both lock files (needs uv)
	$(COMPILE) --group dev -o requirements-dev.lock
	$(COMPILE) --group demo --group build -c requirements-dev.lock -o requirements.lock

clean:
	rm -rf $(VENV) $(VENV)-* demo-output docs/_build
