# Every task of the project. Each sets up what it needs by itself; a second run starts at once.

VENV ?= .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Where torch comes from, if not from where pip takes everything else; see CONTRIBUTING.md.
TORCH_INDEX ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow reliability coverage bench lint format docs clean

help: ## list the tasks
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

# The stamps say which part of the environment is there and how old it is. Torch goes first, by its
# exact version; from an index of its own it comes alone, what it needs follows with the rest. An
# environment without a pip, half made or by a Python without ensurepip, is made anew.
$(VENV)/.core: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once, a minute or two) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "crossgaze needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0])'
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $$(test ! -f $(VENV)/pyvenv.cfg || echo --clear) $(VENV) || { \
	  echo "$(VENV) could not be made; on Debian and Ubuntu: apt install python3-venv, then make again" >&2; exit 1; }
	@$(INSTALL) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX) --no-deps) torch==$$(sed -n 's/^torch==//p' constraints.txt)
	@$(INSTALL) -e '.[demo]'
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@echo "Installing the development tools ..."
	@$(INSTALL) -e '.[dev]'
	@# Only for the sentence tables inside it, the tokenizer's oracle; none of its own needs.
	@$(INSTALL) --no-deps llama-index-core
	@touch $@

demo: $(VENV)/.core ## try it on photographs that come with Python packages
	@$(BIN)/crossgaze demo

# A process for each core, each with one thread; tests of one file stay together.
test: $(VENV)/.dev ## run the tests (about ten minutes)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

test-slow: $(VENV)/.dev ## run the slow tests as well
	@$(BIN)/python -m pytest -m "slow or not slow" $(ARGS)

# About an hour on an idle machine. RUNS may name some of the tests, whose counts take the place of
# their old ones; without it everything is counted anew.
RUNS ?= tests/fuzz tests/reliability tests/search/test_durability.py tests/search/test_killed_tending.py tests/search/test_killed_approximate.py tests/data/regions/test_store.py
reliability: $(VENV)/.dev ## repeat the bad days often, count, and write docs/reliability.md
ifeq ($(origin RUNS),file)
	@rm -f results/reliability.json
endif
	@CROSSGAZE_COUNTS=results/reliability.json OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist load -m slow $(RUNS)
	@$(BIN)/python tools/reliability_page.py

coverage: $(VENV)/.dev ## run the tests, say which lines none of them ran, want 90 % of data/ and vision/
	@$(BIN)/python -m pytest --cov --cov-report=term $(ARGS)
	@for part in data vision; do echo "== $$part"; \
	  $(BIN)/coverage report --include="src/crossgaze/$$part/*" --fail-under=90 || exit 1; done

bench: $(VENV)/.dev ## measure speed, as ratios; keep the machine idle meanwhile
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

lint: $(VENV)/.dev ## check style, types, and that dependencies are as they should be
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python tools/audit.py

format: $(VENV)/.dev ## mend style
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(VENV)/.dev ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "site/index.html"

clean: ## remove the environment and everything that was made
	rm -rf $(VENV) build dist site demo .coverage* htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache
