# `make demo` and `make test` work in a fresh clone with nothing but Python 3.11: they make .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SAMPLE := samples/kv-cache-startup/bundle

.PHONY: demo test lint eval bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/oomforensics analyze $(SAMPLE)

test: $(STAMP) lint
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

eval: $(STAMP)
	$(BIN)/python tests/evaluate.py

bench: $(STAMP)
	$(BIN)/python tests/bench.py

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
