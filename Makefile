# `make run` opens the explorer, `make check` is for every change, `make test` runs everything that must pass.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= auto
# Time of each of the 37 readers; each needs some seconds to start.
FUZZ_SECONDS ?= 4

# Compiled by these tests first, as are the files of the tests when they are collected: else every worker
# compiles the same files and loops at the same time.
KERNELS := tests/simulation/test_jit.py tests/linpack/test_accelerated.py tests/linpack/test_kernels.py

# Tests run side by side, and threads of OpenBLAS wait actively: with them tests of fits take 1.2 to 1.6 times the CPU time.
fast tests monkey: export OPENBLAS_NUM_THREADS := 1

# Hundreds of processes start in the tests: each would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run check test style fast tests monkey fuzz architecture bench docs screenshots release clean

run: $(VENV)/.installed
	$(BIN)/whatif open jacobi2d

# The style checks keep one core busy while the tests use the other.
check: $(VENV)/.installed-test
	$(MAKE) -j2 style fast

test: $(VENV)/.installed-test
	$(MAKE) -j2 style tests

style: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

fast: $(VENV)/.installed-test
	$(BIN)/pytest -n $(JOBS) -m 'not slow'

tests: $(VENV)/.installed-test
	$(BIN)/python -m compileall -q whatif
	-$(BIN)/pytest --collect-only -q >/dev/null
	$(BIN)/pytest -n 2 -k compiled $(KERNELS)
	$(BIN)/pytest -n 3 --dist worksteal

monkey: $(VENV)/.installed-test
	WHATIF_MONKEY=5000 $(BIN)/pytest -n 3 tests/tui/test_random_keys.py tests/docs/test_explorer_tasks.py

fuzz: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]'
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

architecture: $(VENV)/.installed-test
	$(BIN)/python docs/architecture_table.py

bench: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

docs: $(VENV)/.installed-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

screenshots: $(VENV)/.installed-test
	WHATIF_WRITE_SCREENSHOTS=1 $(BIN)/pytest tests/tui/test_screenshots.py

# A recent pip resolves dependencies a quarter faster than that of Python 3.11.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[simulation]'
	@touch $@

# Most of what the tests need is never imported: compiling all of it takes two fifths of the installation.
$(VENV)/.installed-test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[test]'
	@touch $@ $(VENV)/.installed

# Wheel and sdist, checked in environments of their own; see release.sh.
release: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[release]'
	PYTHON=$(BIN)/python sh release.sh

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
