# Every target makes the environment it needs. `make help` lists them.

VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin
NEWER_THAN_3_10 := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
CANDIDATES := python3 python3.13 python3.12 python3.11
FIRST_OF = $(shell for each in $(1); do "$$each" $(NEWER_THAN_3_10) 2>/dev/null && echo "$$each" && break; done)

PYTHON ?= $(call FIRST_OF,$(CANDIDATES))
# The oldest wheels exist for 3.11 and 3.12 only.
OLDEST_PYTHON ?= $(call FIRST_OF,python3.11 python3.12 $(PYTHON))
# Logic that no version of a dependency changes: once a run is enough.
SAME_WITH_OLDEST := robustness distance metrics stability/test_removal stability/test_retrain stability/test_approach stability/test_neighbours stability/test_published stability/test_optimism privacy/test_topdown privacy/test_utility privacy/test_published privacy/test_tree_mechanism privacy/test_audit federated privacy/test_ledger comparison
# Help, tables and pages are worded and laid out by dependencies as well.
OTHER_WITH_OLDEST := help commands pages
OPTIONAL := data or slow or heavy or federated or browser or interop

.DEFAULT_GOAL := help
.PHONY: help demo wheel same-wheel sbom mutate fuzz soak exports test check docs bench install-oldest install-federated install-docs test-oldest test-marked test-interop test-slow test-data test-heavy test-federated test-browser about-browser clean

help:  ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*##/\1 -/p' Makefile | awk -F ' - ' '{printf "%-16s %s\n", $$1, $$2}'

demo: $(VENV)/.with-core  ## compare learners on scikit-learn's breast cancer data, report on a tree
	@mkdir -p demo
	$(BIN)/steadytree compare --jobs 2 --folds 4 --time-limit 1 --out demo/compare.html
	$(BIN)/steadytree report --comparison demo/compare.html --out demo/report.html
	@echo "open $(CURDIR)/demo/report.html"

test: $(VENV)/.with-test  ## all tests but the marked ones
	$(BIN)/python -m pytest -n 2 -m "not ($(OPTIONAL))"

check: $(VENV)/.with-check $(VENV)/.with-test  ## lint, format, types, doctests, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --doctest-modules src tests/test_layers.py

docs: $(VENV)/.with-docs  ## build docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.with-bench  ## time and memory beside scikit-learn
	$(BIN)/python benchmarks/fit_speed.py

install-oldest: $(OLDEST)/.installed
install-federated: $(VENV)/.with-federated
install-docs: $(VENV)/.with-docs

test-oldest: $(OLDEST)/.installed  ## most tests with every dependency at its lower bound
	NUMBA_CACHE_DIR="$(CURDIR)/$(OLDEST)/numba" $(OLDEST)/bin/python -m pytest -n 2 -m "not ($(OPTIONAL))" $(SAME_WITH_OLDEST:%=--ignore-glob="*tests/%*") $(OTHER_WITH_OLDEST:%=--ignore=tests/golden/test_golden_%.py)

test-interop: $(VENV)/.with-test $(VENV)/.with-interop  ## exported trees in shap, skops, ONNX, dtreeviz

test-marked: $(VENV)/.with-test $(VENV)/.with-interop  ## the tests marked interop, slow or data in one run
	$(BIN)/python -m pytest -n 2 -m "(interop or slow or data) and not heavy"

test-federated: $(VENV)/.with-federated

# A mark that no test carries yet is no failure: pytest then ends with 5.
test-interop test-slow test-data test-federated test-browser: $(VENV)/.with-test
	$(BIN)/python -m pytest -n 2 -m "$(@:test-%=%) and not heavy" || [ $$? -eq 5 ]

test-heavy: $(VENV)/.with-test $(VENV)/.with-federated
	$(BIN)/python -m pytest -n 2 -m heavy

test-slow:  ## the tests marked slow
test-heavy:  ## the tests that take minutes each, most of them on the papers' data
test-data:  ## the tests on the papers' data, in the folder named by STEADYTREE_DATA
test-federated:  ## three hospitals over Flower, with TLS, keys, and processes that die
test-browser: about-browser  ## the tests that open pages in a headless browser

about-browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || [ -n "$$STEADYTREE_BROWSER" ] \
	  || echo "No chromium is installed, so these tests are skipped. Install it (Debian: apt-get install chromium), or name one in STEADYTREE_BROWSER."

wheel: $(VENV)/.with-core  ## a wheel for this platform, with its loops compiled
	$(BIN)/python tools/compiled_wheel.py dist

# The last commit is the time of all files, so that the same source gives the same bytes.
same-wheel: $(VENV)/.with-core  ## build the wheel twice and compare the bytes
	$(BIN)/python tools/supply.py --same-wheel

sbom: $(VENV)/.with-core  ## list all dependencies with their licences in build/sbom.json
	$(BIN)/python tools/supply.py

COUNT ?= 60
SEED ?= 0
mutate: $(VENV)/.with-test  ## change COUNT things in modules with numbers, and see whether tests notice
	$(BIN)/python tools/mutate.py --count $(COUNT) --seed $(SEED) --jobs 2

fuzz: $(VENV)/.with-test  ## 2,000 changed commands and files: one line each, no input lost
	$(BIN)/python tools/fuzz.py --seed $(SEED)

exports: $(VENV)/.with-test $(VENV)/.with-interop  ## 1,000 random trees and risk scores in every form
	$(BIN)/python tools/compare_exports.py --seed $(SEED)

soak: $(VENV)/.with-test  ## an hour of commands that are killed, or find the disk full or slow
	$(BIN)/python tools/soak.py --minutes 60 --seed $(SEED)

clean:  ## remove environments, caches and everything built
	rm -rf $(VENV) $(OLDEST) benchmarks/.venvs build dist demo docs/_build docs/api docs/gallery
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "steadytree needs Python 3.11 or later; none of $(CANDIDATES) is. Try: make PYTHON=/path/to/python"; exit 1; }
	@"$(PYTHON)" $(NEWER_THAN_3_10) || { echo "steadytree needs Python 3.11 or later, and $(PYTHON) is not. Try: make PYTHON=/path/to/python"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

$(VENV)/.with-core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.with-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

$(OLDEST)/.installed: pyproject.toml tools/oldest.py
	@test -n "$(OLDEST_PYTHON)" || { echo "the oldest-versions run needs Python 3.11 or 3.12"; exit 1; }
	rm -rf $(OLDEST)
	"$(OLDEST_PYTHON)" -m venv $(OLDEST)
	$(OLDEST)/bin/python tools/oldest.py > $(OLDEST)/requirements.txt
	$(OLDEST)/bin/python -m pip install --quiet --requirement $(OLDEST)/requirements.txt --editable .
	@touch $@
