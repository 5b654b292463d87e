# Each target does all of its own set-up; a machine needs Python and make. The
# newest Python that is supported is taken; PYTHON=<path> names another.
IS_SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
  $$p -c "$(IS_SUPPORTED)" 2>/dev/null && command -v $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
POD := .venv-pod
EPOCHS ?= 10
DIGITS ?= runs/make_digits
TABLES ?= runs/make_tables
JOBS ?= 2

.PHONY: digits tables test test-all slurm lint format clean bench bench-input pod

digits: $(VENV)/.installed  ## COMEN on mini digits and its page; minutes on two cores
	$(BIN)/python -m comen_jax.main --config configs/digits.py \
	  --config.epochs=$(EPOCHS) --config.stage_shares="(0.2, 0.3, 0.5)" \
	  --workdir $(DIGITS)
	$(BIN)/python -m comen_jax.report $(DIGITS)

# Two runs at a time on the CPU; with one core, give JOBS=1.
tables: $(VENV)/.installed  ## a small sweep on mini digits, and its report
	JAX_PLATFORMS=cpu $(BIN)/python -m comen_jax.sweep --config configs/digits.py --jobs=$(JOBS) \
	  --targets=pasted,street --seeds=0,1 --methods=deepall_bn,comen \
	  --config.epochs=2 --config.stage_shares="(0.0, 0.5, 0.5)" \
	  --workdir $(TABLES)
	$(BIN)/python -m comen_jax.report $(TABLES)

# Two workers take whole files, in the order in which conftest.py puts them.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test: $(VENV)/.installed-dev lint  ## all fast tests
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.installed-dev lint  ## and those that take minutes
	$(PYTEST)

slurm: $(VENV)/.installed-dev  ## launch/slurm.sbatch under a real Slurm; root and Debian's Slurm
	tests/slurm.sh

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(BENCH) $(POD) .pytest_cache .ruff_cache

$(BIN)/python $(BENCH)/bin/python $(POD)/bin/python: %/bin/python:
	@"$(PYTHON)" -c "$(IS_SUPPORTED)" 2>/dev/null || \
	  { echo "error: $(if $(PYTHON),$(PYTHON) is not,there is no) Python 3.11 to 3.13:" \
	    "give make PYTHON=<path of one>"; exit 1; }
	"$(PYTHON)" -m venv $*

$(VENV)/.installed: requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/.installed-dev: requirements-dev.txt requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-dev.txt
	touch $@ $(VENV)/.installed

bench: $(BENCH)/.installed  ## our steps beside PyTorch's; half an hour on two quiet cores
	$(BENCH)/bin/python -m benchmarks.steps --out results/steps.json

bench-input: $(BENCH)/.installed  ## our input against a DataLoader; DATA holds pacs.zip
	$(BENCH)/bin/python -m benchmarks.input --data_dir $(DATA) --out results/input.json

# An environment of its own: nothing else needs torch.
$(BENCH)/.installed: requirements-bench.txt requirements.txt | $(BENCH)/bin/python
	$(BENCH)/bin/python -m pip install -q --disable-pip-version-check -r requirements-bench.txt
	touch $@

pod: $(POD)/.installed  ## steps compiled for TPU slices without a TPU; an hour on two cores
	$(POD)/bin/python -m benchmarks.pod --out results/pod.json --page docs/scale.md

# An environment of its own: libtpu has 1.5 GB and slows every import of jax.
$(POD)/.installed: requirements-pod.txt requirements.txt | $(POD)/bin/python
	$(POD)/bin/python -m pip install -q --disable-pip-version-check -r requirements-pod.txt
	touch $@
