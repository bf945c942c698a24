# Every target sets up what it needs: a virtual environment in .venv with the versions of constraints.txt.
# Needed beforehand: make, and Python 3.11, 3.12 or 3.13 with its venv module.
#
#   make try        show what an editor would show: a recording of typing, and gaps in sample files
#   make test       formatting, lint, types, layers, tests
#   make test-full  the same, with the slow and the end-to-end tests
#   make fix        format, and mend what ruff can mend
#   make bench      quality and speed of the shipped model
#   make docs       build the documentation into build/site
#   make vscode     install the VS Code extension, and `calomel` where it looks (CODE=cursor: in another editor)
#   make vsix       pack the VS Code extension into dist/calomel.vsix (needs Node.js 20.19 or newer)
#   make wheel      pack everything, weights and plugins too, into dist/calomel-*.whl
#   make first-hour follow the README to a next edit accepted in Neovim and VS Code, with nano and with your model, timed
#   make gpu        prepare training on a borrowed GPU: shards, data to fit on, and wheels, in runs/ (see docs/developers/training.md)
#   make clients    fetch other people's clients, which `make test-full` then lets talk to the server
#
# Another interpreter: make PYTHON=python3.12 try. Another place for the environment: make VENV=/path try.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := try
.PHONY: try test test-full check lint types types-elsewhere fix bench clients docs has-code vscode vsix wheel vscode-smoke first-hour gpu clean

VENV ?= .venv
PYTHON ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-input --constraint constraints.txt

# The NVIDIA driver's, on Linux and in WSL2.
CARDS := $(wildcard /proc/driver/nvidia/version /usr/lib/wsl/lib/nvidia-smi)
SMALL_TORCH := $(if $(CARDS)$(filter-out Linux,$(shell uname -s)),,$(PIP) --retries 1 --no-deps \
    --index-url https://download.pytorch.org/whl/cpu torch 2>/dev/null || true)

try: $(VENV)/.installed-base
	@$(BIN)/calomel try

test: check
	$(BIN)/python -m pytest -n "$$(getconf _NPROCESSORS_ONLN)" --dist worksteal -m "not slow and not e2e"

test-full: check
	$(BIN)/python -m pytest

check: lint types

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo
	$(BIN)/zizmor --offline --quiet .github

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# What runs in people's homes, as it would be on their systems: nothing of it has been run there.
types-elsewhere: $(VENV)/.installed-dev
	for platform in win32 darwin; do
	    $(BIN)/mypy --platform "$$platform" $(addprefix --package calomel.,cli context engine families infer lsp server storage suggest workspace)
	done

fix: $(VENV)/.installed-dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.installed-dev
	$(BIN)/calomel bench infill --model nano
	$(BIN)/calomel bench speed

# A server that a scripted model answers for: two of the tests that `make test-full` runs all of.
vscode-smoke: $(VENV)/.installed-dev editors/vscode/node_modules/.installed
	$(BIN)/python -m pytest \
	    tests/editors/vscode/test_workbench.py::test_it_appears_while_typing_and_tab_takes_it \
	    tests/editors/vscode/test_workbench.py::test_the_first_key_goes_there_and_the_second_takes_it

first-hour: $(VENV)/.installed-dev
	$(BIN)/python -m tests.e2e.first_hour

# Another cache of clones: make gpu CACHE="--cache FOLDER". Other repositories to train on: make gpu LIST="--repositories FILE".
CACHE ?=
LIST ?=
# What a machine with PyTorch, transformers and SciPy usually lacks.
CARRIED := annotated-doc annotated-types cattrs msgspec platformdirs pydantic pydantic-core rapidfuzz starlette \
    typing-inspection watchdog zstandard $(shell grep -oE '^tree-sitter[a-z-]*' constraints.txt)
CALIBRATION := --repositories model/calomel/training/corpus/calibration.toml
gpu: $(VENV)/.installed-dev
	mkdir -p runs
	$(BIN)/calomel corpus --out corpus/text $(CACHE) $(LIST)
	$(BIN)/calomel edits --corpus corpus/text --out corpus/edits $(CACHE) $(LIST) --stories 12000
	$(BIN)/calomel shards --corpus corpus/text --edits corpus/edits --out runs/shards --tokens 32000000
	$(BIN)/calomel corpus --out runs/calibration/text $(CACHE) $(CALIBRATION)
	$(BIN)/calomel edits --corpus runs/calibration/text --out runs/calibration/edits $(CACHE) $(CALIBRATION) --stories 4000 --heldout 0
	rm -rf runs/wheels
	$(BIN)/python -m pip download --quiet --dest runs/wheels --no-deps --only-binary :all: --python-version 3.12 --abi cp312 --abi abi3 \
	    --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --constraint constraints.txt $(CARRIED)
	echo "What travels, in bytes (at most 67,108,864):"
	(git ls-files -z; find runs/shards runs/calibration runs/wheels -type f -print0) | du -cb --files0-from=- | tail -n 1

clients:
	tests/tools/get-clients

docs: $(VENV)/.installed-dev
	$(BIN)/calomel config reference > docs/reference.md
	$(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

CODE ?= code
has-code:
	@command -v "$(CODE)" >/dev/null || { echo "There is no command $(CODE). If yours is another editor: make vscode CODE=codium, cursor or windsurf" >&2; exit 1; }

vscode: has-code $(VENV)/.installed-base vsix
	"$(CODE)" --install-extension dist/calomel.vsix --force
	mkdir -p ~/.local/bin
	ln -sfn "$(abspath $(BIN)/calomel)" ~/.local/bin/calomel

# With a wheel in it, so that the extension can install the server.
vsix: $(VENV)/.installed-build editors/vscode/node_modules/.installed
	@rm -rf dist/calomel.vsix editors/vscode/server
	$(BIN)/python -m hatchling build --target wheel --directory editors/vscode/server
	cd editors/vscode
	npm run --silent package

# With an extension in it that has none, as the server is there.
wheel: $(VENV)/.installed-build
	@rm -rf dist/calomel.vsix editors/vscode/server
	if command -v npm >/dev/null; then
	    $(MAKE) --no-print-directory editors/vscode/node_modules/.installed
	    (cd editors/vscode && npm run --silent package)
	else
	    echo "Without Node.js the extension for VS Code is not in the wheel." >&2
	fi
	$(BIN)/python -m hatchling build --target wheel
	ls -l dist/*.whl

editors/vscode/node_modules/.installed: editors/vscode/package-lock.json
	@command -v npm >/dev/null || { echo "make vsix needs Node.js 20.19 or newer, with npm" >&2; exit 1; }
	cd editors/vscode
	echo "Installing what the VS Code extension is built with into editors/vscode/node_modules (once)"
	npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	touch node_modules/.installed

clean:
	rm -rf editors/vscode/{node_modules,dist,dist-test}
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The first Python of a supported version whose venv module works (Debian ships it apart, as python3-venv).
$(BIN)/python:
	@usable() { "$$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; }
	for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do
	    if usable "$$candidate" 2>/dev/null; then
	        echo "Making $(VENV) with $$("$$candidate" --version)"
	        exec "$$candidate" -m venv --clear $(VENV)
	    fi
	done
	echo "Calomel needs Python 3.11, 3.12 or 3.13 with its venv module; none was found." >&2
	echo "On Debian or Ubuntu: sudo apt-get install python3 python3-venv. Or name one: make PYTHON=/path/to/python3.12" >&2
	exit 1

# nano needs the engine, GGUF files need llama.cpp; the tools of `make test` come with them. On Linux, the package index has torch for NVIDIA's cards,
# which is 5 GB: where no driver of a card is, the build for processors is taken first, if it can be had.
$(VENV)/.installed-base: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Calomel and what it needs into $(VENV) (once; torch is the large part)"
	$(SMALL_TORCH)
	$(PIP) --editable '.[engine,llama]'
	touch $@

# Packing needs one tool, and neither torch nor the test tools.
$(VENV)/.installed-build: pyproject.toml constraints.txt | $(BIN)/python
	@$(PIP) hatchling
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Calomel, the test tools and what they need into $(VENV) (once)"
	$(SMALL_TORCH)
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.installed-base
