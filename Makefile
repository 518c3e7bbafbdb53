# Two commands: `make run` opens the explorer, `make test` runs everything that must pass.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

# Hundreds of processes start in the tests: each would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test checks tests bench screenshots clean

run: $(VENV)/.installed
	$(BIN)/whatif open jacobi2d

# Beside each other: the checks keep one core busy at a time, the tests wait now and then.
test: $(VENV)/.installed-test
	$(MAKE) -j2 checks tests

checks: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

tests: $(VENV)/.installed-test
	$(BIN)/python -m compileall -q whatif
	$(BIN)/pytest -n 4

bench: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

screenshots: $(VENV)/.installed-test
	WHATIF_WRITE_SCREENSHOTS=1 $(BIN)/pytest tests/tui/test_screenshots.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
