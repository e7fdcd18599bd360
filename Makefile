# make run       set everything up and run the main job
# make check     lint, types, unit tests (under 3 minutes)
# make test      check, the C++ tests under sanitizers, every other test
# make bench     the benchmarks and their report in bench/ (AGORA_LIVE_BENCH_S=60: the live ones at full length)
# make setup     .venv and the native build; every target begins with it
# make clean     remove what was built
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
CMAKE := $(VENV)/bin/cmake
CTEST := $(VENV)/bin/ctest
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export RAY_USAGE_STATS_ENABLED := 0
export RAY_worker_niceness := 0

.PHONY: setup help native run test check lint types unit cpp-test bench clean

setup: $(VENV)/.ready native

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) -m pip install --quiet "scikit-build-core>=0.11,<2" "nanobind>=2.4,<4" "cmake>=3.25,<5" "ninja>=1.11"
	$(PY) -m pip install --quiet --no-build-isolation --editable ".[dev]"
	touch $@

# Rebuilds only what changed; the extension modules land beside their packages.
native: $(VENV)/.ready
	@$(CMAKE) -S . -B build/release -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(PY) -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(VENV)/bin/ninja > build/configure.log 2>&1 || (cat build/configure.log; exit 1)
	@$(CMAKE) --build build/release

run: setup
	$(PY) -m experiments.parsync_vs_flow

check: setup lint types unit

lint:
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports
	git ls-files '*.cpp' '*.hpp' | xargs $(VENV)/bin/clang-format --dry-run --Werror

types:
	$(VENV)/bin/mypy

unit:
	$(PY) -m pytest -q tests/unit

# ASan and UBSan for all of it, TSan for what other threads take part in: the solver's races, and cancelling.
cpp-test: setup
	$(CMAKE) -S . -B build/asan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DAGORA_SANITIZE=address
	$(CMAKE) --build build/asan
	$(CTEST) --test-dir build/asan --output-on-failure
	$(CMAKE) -S . -B build/tsan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DAGORA_SANITIZE=thread
	$(CMAKE) --build build/tsan --target flowsolver_race flowsolver_cancel
	$(CTEST) --test-dir build/tsan --tests-regex 'flowsolver_(race|cancel)' --output-on-failure

test: check cpp-test
	$(PY) -m pytest -q tests --ignore=tests/unit

bench: setup
	$(PY) -m tests.benchmarks.report

clean:
	rm -rf build $(VENV) flowsolver/*.so shared_state/*.so schedulers/*.so parsync/core/*.so parsync/metrics/*.so
