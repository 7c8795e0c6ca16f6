# Two commands matter: `make demo` and `make test`. Both set up what they need, and are safe to repeat.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test setup format lint types tests constraints bench-core bench-store bench-spark clean faults test-s3

help:            ## what there is
	@grep -E '^[a-z0-9-]+: .*## |^[a-z0-9-]+:  *## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: setup      ## five unruly writers: stock Spark beside Tidegate, on the same rows
	@$(BIN)/tidegate demo

test: setup lint types tests   ## lint, types and the whole test suite

setup: $(READY)  ## virtual environment, packages, Java
	@scripts/require-java

$(READY): pyproject.toml constraints.txt scripts/setup
	@scripts/setup $(VENV)

lint: $(READY)   ## ruff and the import contracts
	@echo "== lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache

types: $(READY)  ## mypy, strict
	@echo "== types"
	@$(BIN)/mypy

tests: $(READY)  ## the test suite
	@echo "== tests"
	@$(BIN)/pytest -q

faults: $(READY) ## kills at every step, and load in full numbers
	@$(BIN)/pytest -q -m faults

test-s3: $(READY)  ## the store on object storage, on an S3 server built with Go
	@scripts/s3-server
	@$(BIN)/pytest -q -m s3 tests/s3

format: $(READY) ## put the code into the house style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

constraints: $(READY)  ## pin again what is installed now
	@scripts/pin $(VENV)

bench-core: $(READY)   ## speed of the pure core: a table, and build/bench/core.json
	@$(BIN)/python -m bench.core

bench-store: $(READY)  ## speed of the store, beside plain Parquet: a table, and build/bench/store.json
	@$(BIN)/python -m bench.store

bench-spark: $(READY)  ## speed of jobs on Spark, beside stock Spark and DuckDB: build/bench/spark.json
	@$(BIN)/python -m bench.spark

clean:           ## remove everything made here
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
