# make setup, demo, test, test-long, sabotage, lint, bench, clean.
# Everything lives in .venv, build and demo.

VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.installed-dev
DEMO := $(VENV)/.installed-demo
WHEEL := build/wheel
CODE := src tests bench examples

# The first Python on the path that is new enough and has wheels for every dependency.
NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11; do \
	"$$each" -c "$(NEW_ENOUGH)" 2>/dev/null && echo "$$each" && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Three on two cores: those that start services mostly wait.
PYTEST := $(BIN)/python -m pytest -v -n 3 --dist loadfile

.PHONY: help setup demo test test-long sabotage wheel lint bench clean

help:
	@echo "make setup      .venv with everything but torch"
	@echo "make demo       table, figure and page in demo/ (installs .[campaign] only)"
	@echo "make test       lint, then the tests and doctests of the built wheel"
	@echo "make test-long  the tests that need minutes"
	@echo "make sabotage   faults put into the source on purpose: none may be missed (20 minutes)"
	@echo "make lint       ruff, mypy, import rules"
	@echo "make wheel      dist/, unpacked in build/wheel"
	@echo "make bench      every script of bench/, quick"
	@echo "make clean      remove what was built; .venv stays"

setup: $(DEV)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 to 3.13 must be on the path, with venv; \
	none is. Install one, or say make PYTHON=/path/to/python3." >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

$(DEV): pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[all,dev]'
	@touch $@ $(DEMO)

# A light environment is enough for the demo; after make setup it is there already.
$(DEMO): pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[campaign]'
	@touch $@

demo: $(DEMO)
	$(BIN)/discreet demo --out demo

lint: $(DEV)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

# What is tested is the wheel: it comes before the editable install on the path.
test: lint wheel
	PYTHONPATH="$(CURDIR)/$(WHEEL)" DISCREET_TESTS_WHEEL=1 \
		$(PYTEST) -m "not long" --doctest-modules tests $(WHEEL)/discreet

test-long: wheel
	PYTHONPATH="$(CURDIR)/$(WHEEL)" DISCREET_TESTS_WHEEL=1 $(PYTEST) -m long tests

sabotage: $(DEV)
	PYTHONPATH=tests $(BIN)/python -m sabotage.run --page docs/results/audit/sabotage.md

wheel: $(DEV)
	rm -rf $(WHEEL) dist
	$(BIN)/python -m build --wheel --outdir dist
	$(PIP) install --no-deps --no-compile --target $(WHEEL) dist/*.whl

bench: $(DEV)
	$(PIP) install --editable '.[bench]'
	@set -e; for script in $$(grep -l -e --quick bench/*.py); do \
		echo "$$script"; $(BIN)/python $$script --quick; done

clean:
	rm -rf build dist demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +
