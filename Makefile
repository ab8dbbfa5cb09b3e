# Two commands do everything on a machine with Python 3.11 and make: `make demo` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: setup demo test lint learn-check bench-mdp bench-learn theory lock clean

setup: .venv/.setup  ## create .venv with the command .venv/bin/scal

demo: .venv/.setup  ## the paper's inventory problem: solve it exactly, then learn it from samples
	rm -rf out/demo && mkdir -p out
	$(BIN)/scal solve inventory --plot out/exact.png
	$(BIN)/scal train scal/Inventory-v0 --steps 50000 --seeds 1 --out out/demo
	$(BIN)/scal eval out/demo --plot out/learned.png

test: .venv/.test  ## lint, check types, run the tests
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto

learn-check: .venv/.test  ## what is learned on every seed; RUN=all or RUN=ENV measures anew
	$(BIN)/python -m benchmarks.learning $(if $(RUN),--run $(RUN))

bench-mdp: .venv/.bench  ## exact solvers side by side, table and JSON
	$(BIN)/python -m benchmarks.mdp

bench-learn: .venv/.rivals  ## learners side by side, one thread each, table and JSON
	$(BIN)/python -m benchmarks.learn

theory: .venv/.setup  ## figures and numbers of docs/theory.md
	$(BIN)/python -m experiments.theory

lint: .venv/.test  ## fix what can be fixed without a person
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

lock: .venv/.test  ## write the locked versions anew from pyproject.toml
	$(BIN)/pip install --quiet pip-tools
	for group in run test bench rivals; do \
	  extra=$$([ $$group = run ] || echo --extra $$group --constraint requirements/run.lock); \
	  $(BIN)/pip-compile --quiet --upgrade --strip-extras --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
	    $$extra --output-file requirements/$$group.lock pyproject.toml || exit 1; \
	done
	sed -i 's/+cpu$$//' requirements/rivals.lock  # any build of torch will do

# A stamp file per group: a second `make` installs nothing.
.venv/.setup: requirements/run.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/run.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

.venv/.test .venv/.bench .venv/.rivals: .venv/.%: requirements/%.lock .venv/.setup
	$(BIN)/pip install --quiet --disable-pip-version-check -r $<
	touch $@

clean:  ## remove what the other targets made
	rm -rf .venv out .pytest_cache .ruff_cache .mypy_cache
