# Two commands: `make demo` and `make test`. All create the environment in .venv first.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
FAST := tests/test_architecture.py tests/contracts tests/losses tests/views tests/test_golden.py tests/test_errors.py

C_CODE := hatch_build.py src/dicot/core/native.h src/dicot/model/kernels.c src/dicot/nets/encoders/universal.c

# The editable install compiles the C code into src/.
$(STAMP): pyproject.toml constraints.txt $(C_CODE)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

.PHONY: setup native demo test test-fast test-slow bench-smoke paper site web check format clean

setup: $(STAMP)

# numba compiles aeon's MiniRocket once for a machine, which takes longer than the demo.
.venv/.compiled: $(STAMP)
	$(BIN)/dicot evaluate synthetic --method minirocket --protocols ridge
	touch .venv/.compiled

# OSULeaf is the largest set that comes with aeon and that the encoder in the box has not seen.
demo: .venv/.compiled  ## the default without training, beside MiniRocket, statistics with a forest, and the controls; writes out/demo/report.html
	$(BIN)/dicot evaluate OSULeaf --preset instant --protocols few_5,ridge --out out/demo --overwrite

# Two processes with one thread each: on tensors as small as those of the tests more threads mostly wait.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

native:  ## compile the C code into src/, for a clone that is used without `make setup`; needs a C compiler and Python only
	$(PYTHON) hatch_build.py

test: $(STAMP)
	$(PYTEST) -m "not slow"

test-slow: $(STAMP)  ## the rest: kills, memory, several processes, every page of the documentation
	$(PYTEST) -m slow

test-fast: $(STAMP)  ## what is quick and telling, in less than a minute: rules, registries, losses, views, golden values
	$(PYTEST) -m "not slow" $(FAST)

bench-smoke: $(STAMP)  ## every method, control and protocol with ten steps each; writes out/smoke/report.html, which is no result
	$(BIN)/python -m bench run smoke --ledger out/smoke.sqlite
	$(BIN)/python -m bench report smoke --ledger out/smoke.sqlite --out out/smoke --overwrite

paper: $(STAMP)  ## every table and figure of the paper, from results/ into docs/results/paper
	$(BIN)/python -m bench paper --records results --out docs/results/paper --overwrite

site: $(STAMP)  ## the documentation as a site, out/site/index.html; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

web:  ## the explorer's page, from its sources in web/ into the package; needs node 20, and npm's registry
	cd web && npm ci && npm run build

clean:
	rm -rf .venv out .pytest_cache .mypy_cache .ruff_cache .hypothesis
