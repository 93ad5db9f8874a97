# Everything is set up in .venv by whichever target comes first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Each with its grid of cells and its part of docs/results.md (experiments/common.py).
EXPERIMENTS := comparison synthetic ablation_parts ablation_weight ablation_batch timing theory
LIMITS = $(if $(WORKERS),--workers $(WORKERS)) $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: demo test lint results experiments bench clean

demo: $(VENV)/installed
	$(BIN)/diffbbo run tfbind8 --rounds 5 --batch 100 --seed 0 --storage runs/demo.db --name demo
	$(BIN)/diffbbo report runs/demo.db --name demo --out runs/demo.html

test: $(VENV)/installed lint
	$(BIN)/python -m pytest -m "not slow and not cuda"

lint: $(VENV)/installed
	$(BIN)/ruff check src tests experiments benchmarks
	$(BIN)/ruff format --check src tests experiments benchmarks
	$(BIN)/mypy

results: $(VENV)/installed
	for name in $(EXPERIMENTS); do $(BIN)/python -m experiments.$$name draw || exit 1; done

# Completes what is missing, for hours or days: `make experiments WORKERS=8 MINUTES=60` gives each experiment an hour.
# Times are taken first and one study at a time, so begin on a quiet machine.
experiments: $(VENV)/installed
	$(BIN)/python -m experiments.timing run $(LIMITS) --workers 1
	$(BIN)/python -m experiments.theory moments
	for name in $(filter-out timing,$(EXPERIMENTS)); do $(BIN)/python -m experiments.$$name run $(LIMITS) || exit 1; done
	$(MAKE) results

# Speed beside what a user would do instead, docs/performance.md; half an hour on a machine with nothing else to do.
bench: $(VENV)/installed
	$(BIN)/python -m benchmarks run
	$(BIN)/python -m benchmarks draw

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "diffbbo needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
