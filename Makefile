# make setup    environment in .venv, system libraries, a Vulkan driver (seconds when in place)
# make demo     a drawer search and RememberColor, with and without keyframes; see runs/demo/report.html
# make test     the tests on two cores, without those marked slow (`make test-slow` runs those)
# make check    linter, formatting, types, import rules
# make build    the wheel, in dist/
.PHONY: setup demo test test-slow check build

PYTHON ?=
BIN := .venv/bin

setup:
	@tools/setup.sh $(if $(PYTHON),--python $(PYTHON))

demo: setup
	@$(BIN)/predimem demo

# The tests start over 100 processes: packages are compiled once for all of them, whatever the shell says.
test test-slow: export PYTHONDONTWRITEBYTECODE :=

test: setup
	@$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

test-slow: setup
	@$(BIN)/python -m pytest -m slow

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/python -m pytest tests/test_imports.py

build: setup
	@rm -rf build
	@$(BIN)/uv build --wheel --out-dir dist
