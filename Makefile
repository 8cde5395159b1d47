# make help lists the targets. Everything lives in .venv, .venv-torch, build and demo.

VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.installed-dev
DEMO := $(VENV)/.installed-demo
WHEEL := build/wheel
LOCK := requirements-dev.lock
TORCH_VENV := .venv-torch
TORCH_DEV := $(TORCH_VENV)/.installed
CODE := src tests bench examples docs/site

# The first Python on the path that is new enough and has wheels for every dependency.
NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))
PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11 python3.14; do \
	"$$each" -c "$(NEW_ENOUGH)" 2>/dev/null && echo "$$each" && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Four on two cores: those that start services mostly wait.
PYTEST := python -m pytest -v -n 4 --no-loadscope-reorder
# What is tested is the wheel: it comes before the editable install on the path. Bytecode is kept,
# also where the environment says otherwise: five processes and their children read it.
TEST_WHEEL := PYTHONDONTWRITEBYTECODE= PYTHONPATH="$(CURDIR)/$(WHEEL)" DISCREET_TESTS_WHEEL=1 $(BIN)/$(PYTEST)
SHORT := -m "not long" --doctest-modules tests $(WHEEL)/discreet
# One version, which the lock file has too: make lock TORCH=torch==X changes it.
TORCH ?= torch==2.13.0
# The last one that Python 3.11 and NumPy 2 may install; it needs torch (docs/friends.md).
OBP := obp==0.4.1
# What looks at a release has pins of its own.
RELEASE_VENV := .venv-release
RELEASE_BIN := $(RELEASE_VENV)/bin
CLEAN := build/clean

.PHONY: help setup demo test tested bytecode test-torch test-gpu test-long sabotage coverage wheel lint docs bench lock clean check-deploy \
	release-check sbom

help:
	@echo "make setup      .venv with everything but torch"
	@echo "make demo       table, figure and page in demo/ (installs .[campaign] only)"
	@echo "make test       the tests and doctests of the built wheel, and lint"
	@echo "make test-torch the tests that need torch, in .venv-torch; none may be skipped"
	@echo "make test-gpu   kernels and plans on a GPU, compared with float64 NumPy (GPU_PYTHON: one with torch for CUDA)"
	@echo "make test-long  the tests that need minutes"
	@echo "make sabotage   faults put into the source on purpose: none may be missed (10 minutes)"
	@echo "make check-deploy what the image does, and nginx in front (NGINX_PROGRAM=nginx); needs a network"
	@echo "make coverage   make test once more, with the lines that it runs"
	@echo "make lint       ruff, mypy, import rules"
	@echo "make docs       the site, in build/site: open build/site/index.html"
	@echo "make wheel      dist/, unpacked in build/wheel"
	@echo "make release-check  sdist and wheel in dist/, looked at, and installed where nothing else is"
	@echo "make sbom       dist/sbom.cdx.json: what an install brings, after make release-check"
	@echo "make notebooks  the tutorials as notebooks, in build/notebooks"
	@echo "make bench      every script of bench/, quick"
	@echo "make lock       new versions in $(LOCK)"
	@echo "make clean      remove what was built; environments stay"

setup: $(DEV)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 to 3.14 must be on the path, with venv; \
	none is. Install one, or say make PYTHON=/path/to/python3." >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

$(DEV): pyproject.toml $(LOCK) | $(BIN)/python
	$(PIP) install --constraint $(LOCK) --editable '.[all,dev,docs]'
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

# Linters run next to the tests, and their output comes last; either of the two may fail.
test: $(DEV)
	@output=$$(mktemp); $(MAKE) --no-print-directory lint > $$output 2>&1 & linters=$$!; \
	$(MAKE) --no-print-directory tested; tests=$$?; \
	wait $$linters; linted=$$?; cat $$output; rm -f $$output; exit $$((tests + linted))

tested: bytecode
	$(TEST_WHEEL) $(SHORT)

# One process compiles the wheel and the tests, so that five need not.
bytecode: wheel
	@$(TEST_WHEEL) -n 0 --collect-only $(SHORT) > build/collected.txt || { cat build/collected.txt; exit 1; }

test-long: wheel
	$(TEST_WHEEL) -m long tests

check-deploy: $(DEV)
	PYTHON=$(abspath $(BIN))/python deploy/check_image.sh
	DISCREET=$(abspath $(BIN))/discreet deploy/check_nginx.sh

coverage: wheel
	$(TEST_WHEEL) --cov=discreet --cov-report=term $(SHORT)

# Triton comes with the CUDA builds of torch alone; its interpreter, which the tests use, needs no GPU.
$(TORCH_DEV): pyproject.toml $(LOCK) | $(BIN)/python
	$(BIN)/python -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip --disable-pip-version-check --quiet install --constraint $(LOCK) \
		--editable '.[all,dev,torch,obp]' '$(TORCH)' '$(OBP)' 'triton; sys_platform == "linux"'
	@touch $@

test-torch: $(TORCH_DEV)
	$(TORCH_VENV)/bin/$(PYTEST) -m torch --no-skips tests

# Any Python that has a CUDA build of torch, and what discreet needs.
GPU_PYTHON ?= python3
test-gpu:
	PYTHONPATH="$(CURDIR)/src$${PYTHONPATH:+:$$PYTHONPATH}" $(GPU_PYTHON) tests/gpu/conformance.py

sabotage: $(DEV)
	PYTHONPATH=tests $(BIN)/python -m sabotage.run --page docs/results/audit/sabotage.md

# A warning, a dead link or a page that no list names fails.
docs: $(DEV)
	$(BIN)/python docs/site/stage.py build/site-source
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -c docs/site -d build/site-cache build/site-source build/site
	$(BIN)/python docs/site/check_site.py build/site

wheel: $(DEV)
	rm -rf $(WHEEL) dist
	$(BIN)/python -m build --wheel --outdir dist
	$(PIP) install --no-deps --no-compile --target $(WHEEL) dist/*.whl

$(RELEASE_BIN)/twine: | $(BIN)/python
	$(BIN)/python -m venv $(RELEASE_VENV)
	$(RELEASE_BIN)/python -m pip --disable-pip-version-check --quiet install \
		build check-wheel-contents cyclonedx-bom twine

# The source archive is what is installed: it makes the wheel that people would get.
release-check: $(RELEASE_BIN)/twine
	rm -rf dist $(CLEAN)
	$(RELEASE_BIN)/python -m build --outdir dist
	$(RELEASE_BIN)/twine check --strict dist/*
	$(RELEASE_BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python -m venv --without-pip $(CLEAN)
	$(PIP) --python $(CLEAN)/bin/python install dist/*.tar.gz
	$(CLEAN)/bin/discreet version
	cd $(CLEAN) && bin/discreet run --data fried --rows 400 --seeds 1 && \
		bin/python -m doctest $(CURDIR)/README.md
	@du -sm $(CLEAN)/lib/python*/site-packages
	@grep -q '^\[project.urls\]' pyproject.toml || echo "note: pyproject.toml has no [project.urls] yet"

sbom:
	$(RELEASE_BIN)/cyclonedx-py environment --of JSON --pyproject pyproject.toml \
		-o dist/sbom.cdx.json $(CLEAN)/bin/python

# From the pages of docs/tutorials; in build/site/tutorials their links would lead to its pages.
.PHONY: notebooks
notebooks: $(DEV)
	$(BIN)/python docs/site/notebooks.py build/notebooks

bench: $(DEV)
	$(PIP) install --editable '.[bench]'
	@set -e; for script in $$(grep -l -e '"--quick", action' bench/*.py); do \
		echo "$$script"; $(BIN)/python $$script --quick; done

# Universal: one file for every Python and system that pyproject.toml allows, and for .venv-torch.
lock: | $(BIN)/python
	$(PIP) install uv
	echo '$(TORCH)' | $(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 \
		--extra all --extra dev --extra docs --no-annotate --custom-compile-command "make lock" \
		--output-file $(LOCK) pyproject.toml -

clean:
	rm -rf build dist demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +
