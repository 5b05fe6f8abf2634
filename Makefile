# `make demo` and `make test` work in a fresh clone with nothing but Python 3.11: they make .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
FUZZ_SECONDS ?= 60
SAMPLE := samples/kv-cache-startup/bundle

.PHONY: demo test lint generated eval bench fuzz clean

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

generated: $(STAMP)
	$(BIN)/oomforensics patterns catalogue --write
	$(BIN)/python tests/readme.py
	$(BIN)/python -m pytest -q --snapshot-update tests/test_samples.py tests/signatures

eval: $(STAMP)
	$(BIN)/python tests/evaluate.py

bench: $(STAMP)
	$(BIN)/python tests/bench

fuzz: $(STAMP)
	$(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS)

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
