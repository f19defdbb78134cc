.DEFAULT_GOAL := help
PYTHON ?= python3.11
ifeq ($(shell command -v $(PYTHON) 2>/dev/null),)
PYTHON := python3
endif
VENV := .venv
PY := $(VENV)/bin/python
# The suite starts hundreds of processes, which share compiled bytecode.
unexport PYTHONDONTWRITEBYTECODE
PIP_FLAGS := --quiet --disable-pip-version-check --require-hashes

.PHONY: help up install install-dev install-local-embeddings test test-scale test-clients check check-types check-rest format bench scan-model lock clean

help: ## List the targets of this file
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-24s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: install ## Install missing dependencies and start Daybook
	@echo "Starting Daybook. The first start takes longer than later ones."
	@exec $(PY) manage.py up

install: $(VENV)/.runtime ## Make .venv and install the locked dependencies

install-dev: $(VENV)/.dev ## Also install the contributors' tools

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements/runtime.txt | $(VENV)/bin/python
	$(PY) -m pip install $(PIP_FLAGS) -r requirements/runtime.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.runtime
	$(PY) -m pip install $(PIP_FLAGS) -r requirements/dev.txt
	@touch $@

install-local-embeddings: install ## Also install what runs an embedding model in Daybook itself
	$(PY) -m pip install $(PIP_FLAGS) -r requirements/local-embeddings.txt

test: install-dev ## Run the whole test suite on SQLite
	$(PY) -m pytest

# Not collected by test-scale: the libraries' tests, which cannot use a database (import-linter), clients and browsers.
WITHOUT_DATABASE := $(foreach folder,browser clients prompts scanning search,--ignore=tests/$(folder))

test-scale: install-dev ## Run the tests that use a database on PostgreSQL and Redis, without the browser
	DATABASE_URL=$${DATABASE_URL:-postgres://postgres@127.0.0.1:5432/daybook} REDIS_URL=$${REDIS_URL:-redis://127.0.0.1:6379/15} \
	DAYBOOK_SECRET_KEY=$${DAYBOOK_SECRET_KEY:-only-for-this-test-run-000000000000000000000000} REQUIRE_SERVICES=1 $(PY) -m pytest $(WITHOUT_DATABASE) -m "not browser and not any_database"

test-clients: install-dev ## Test real clients, installed from PyPI and npm into .clients (2 GB), with a real Daybook
	TEST_CLIENTS=1 $(PY) -m pytest -n0 -q tests/clients

# Settings of an installation behind TLS. Nothing is connected to.
DEPLOYED := DATABASE_URL=postgres://daybook@127.0.0.1/daybook REDIS_URL=redis://127.0.0.1:6379/0 \
	DAYBOOK_SECRET_KEY=only-for-this-check-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEF \
	DAYBOOK_ALLOWED_HOSTS=chat.example.org DAYBOOK_TRUSTED_ORIGINS=https://chat.example.org

check: install-dev ## Check lint, format, types, import directions, missing migrations, Django's deployment checks
	@$(MAKE) --no-print-directory --jobs=2 check-types check-rest

check-types: # takes as long as all the rest
	$(VENV)/bin/mypy .

check-rest:
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) -m bench.training.scanner_model --check
	$(PY) -m bench.training.authorship_model --check
	$(DEPLOYED) $(PY) manage.py check --deploy --fail-level WARNING

format: install-dev ## Fix what can be fixed automatically
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

bench: install-dev ## Run the benchmarks that need no data (minutes; the others: bench/README.md)
	$(PY) bench/turn_start.py --memories 1000
	$(PY) bench/review_latency.py
	$(PY) bench/gateway.py --against litellm

scan-model: install-dev ## Train the models from bench/scanner_rows and authorship_rows (minutes), print their figures
	OMP_NUM_THREADS=1 $(PY) -m bench.training.scanner_model
	OMP_NUM_THREADS=1 $(PY) -m bench.training.authorship_model

lock: install-dev ## Renew the locked dependencies
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --strip-extras --upgrade -o requirements/runtime.txt requirements/runtime.in
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --strip-extras --upgrade -o requirements/dev.txt requirements/dev.in
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --strip-extras --upgrade -o requirements/otel.txt requirements/otel.in
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --strip-extras --upgrade -o requirements/local-embeddings.txt requirements/local-embeddings.in

clean: ## Remove the environment and caches (never DAYBOOK_HOME)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
