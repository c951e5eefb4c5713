# make run    check the theorems and the claims; the report is report/index.html
# make test   ruff, mypy and the tests
# make format ruff format, where make test finds a file that is not
# make docs   the site, docs/_build/html/index.html, with the report and the cards of all encodings
# All set up .venv by themselves, and again when pyproject.toml or constraints.txt changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
LAYERS := attnproof/symbolic attnproof/numeric attnproof/theorems attnproof/programs

.PHONY: run test format lint types tests docs clean

run: $(VENV)/.run
	$(BIN)/attnproof run --jobs $(JOBS) --html report --json report/results.json

test: $(VENV)/.dev
	$(MAKE) --keep-going lint types tests  # one finding must not hide the others

format: $(VENV)/.dev
	$(BIN)/ruff format .

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/ruff check --select TID251 $(LAYERS)

types: $(VENV)/.dev
	$(BIN)/mypy --num-workers $(JOBS)

tests: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS)

# The cards of all encodings take minutes: they are decided once, and anew after make clean.
docs: $(VENV)/.docs docs/_generated/results.json docs/_generated/extra/cards/index.html
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --quiet docs docs/_build/html

docs/_generated/results.json: | $(VENV)/.docs
	mkdir -p docs/_generated/extra
	$(BIN)/attnproof run --no-numeric --jobs $(JOBS) --html docs/_generated/extra/report --json $@

docs/_generated/extra/cards/index.html: | $(VENV)/.docs
	mkdir -p docs/_generated/extra
	$(BIN)/attnproof table --jobs $(JOBS) --html docs/_generated/extra/cards

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

$(VENV)/.docs: $(VENV)/.made
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) report build *.egg-info docs/_build docs/_generated
