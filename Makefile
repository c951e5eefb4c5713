# make run    check the theorems and the claims; the report is report/index.html
# make test   ruff, mypy and the tests
# Both set up .venv by themselves, and again when pyproject.toml or constraints.txt changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
LAYERS := attnproof/symbolic attnproof/numeric attnproof/theorems attnproof/programs

.PHONY: run test lint types tests schema clean

run: $(VENV)/.run
	$(BIN)/attnproof run --jobs $(JOBS) --html report --json report/results.json

test: $(VENV)/.dev
	$(MAKE) --keep-going lint types tests  # one finding must not hide the others

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff check --select TID251 $(LAYERS)

types: $(VENV)/.dev
	$(BIN)/mypy --num-workers $(JOBS)

tests: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS)

schema: $(VENV)/.run
	$(BIN)/attnproof schema > attnproof/schema.json.new
	mv attnproof/schema.json.new attnproof/schema.json
	$(BIN)/attnproof schema --table > attnproof/table_schema.json.new
	mv attnproof/table_schema.json.new attnproof/table_schema.json
	$(BIN)/attnproof schema --calibration > attnproof/calibration_schema.json.new
	mv attnproof/calibration_schema.json.new attnproof/calibration_schema.json
	$(BIN)/attnproof schema --trials > attnproof/trials_schema.json.new
	mv attnproof/trials_schema.json.new attnproof/trials_schema.json
	$(BIN)/attnproof schema --sweep > attnproof/sweep_schema.json.new
	mv attnproof/sweep_schema.json.new attnproof/sweep_schema.json
	$(BIN)/attnproof schema --code > attnproof/code_schema.json.new
	mv attnproof/code_schema.json.new attnproof/code_schema.json

$(VENV)/.made: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "wanted Python 3.11 or newer, got $$($(PYTHON) --version); make PYTHON=python3.12"; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.run: $(VENV)/.made
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[transformers]'
	touch $@

$(VENV)/.dev: $(VENV)/.made
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) report build *.egg-info
