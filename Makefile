# `make help` lists the targets.
PYTHON ?= python3
WORKERS ?= 2
DEMO_HOME ?= .demo
BIN := .venv/bin
SQL := $(shell find src/holdfast/sql -name '*.sql' 2>/dev/null | sort)

.DEFAULT_GOAL := help
.PHONY: help setup test test-faults check bench schema docs demo

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## create .venv with the pinned dependencies (PYTHON=python3.12 chooses another Python)
	@.ci/venv $(PYTHON)

test: setup ## run all tests (ARGS="-k lease -x" passes options to pytest)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

test-faults: setup ## inject every fault, and write the results to docs/explanation/guarantees.md (FAULT_SEED=7 repeats a run)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --faults --write-table $(ARGS)

check: setup ## check lint, formatting, types, import contracts and SQL lint
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --no-error-summary
	$(BIN)/python tests/type_findings.py
	$(BIN)/lint-imports --no-logo
	@$(if $(SQL),$(BIN)/squawk --config .squawk.toml $(SQL))

bench: setup ## measure Holdfast, its peers and bare SQL (ONLY=drain, QUICK=1, ROUNDS=5, ENGINES=holdfast,pgqueuer)
	$(BIN)/python bench/run.py $(foreach section,$(ONLY),--only $(section)) $(if $(QUICK),--quick) \
	  $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ENGINES),--engines $(ENGINES)) $(ARGS)

schema: setup ## write tests/schema.sql, the schema after all migrations; review its diff
	$(BIN)/python tests/dump_schema.py > tests/schema.sql.new
	mv tests/schema.sql.new tests/schema.sql

docs: setup ## write the pages of docs/reference that are generated from the code and the database
	$(BIN)/python docs/generate.py

demo: setup ## run 3,000 tasks, kill a worker in the middle, and prove that nothing was lost (the database is in .demo)
	HOLDFAST_HOME='$(DEMO_HOME)' $(BIN)/holdfast demo $(ARGS)
