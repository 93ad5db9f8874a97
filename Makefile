# Everything is set up in .venv by whichever target comes first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint clean

demo: $(VENV)/installed
	$(BIN)/diffbbo run tfbind8 --rounds 5 --batch 100 --seed 0 --storage runs/demo.db --name demo
	$(BIN)/diffbbo report runs/demo.db --name demo --out runs/demo.html

test: $(VENV)/installed lint
	$(BIN)/python -m pytest -m "not slow and not cuda"

lint: $(VENV)/installed
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "diffbbo needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
