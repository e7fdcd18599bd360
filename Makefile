# make setup     create .venv and build the extensions; the targets below begin with it
# make run       run the main comparison; about 3 minutes on 2 idle cores, first table after 20 s
#
# make check     run the linters, the type checker and the unit tests; about 3 minutes
# make test      run check, the C++ tests under sanitizers and all other tests; about 18 minutes
# make test-long run the same with four times as many random examples, new ones each time; then
#                plant bugs, one at a time, that the tests must find (tests/mutation_check.py)
# make bench     run the benchmarks; AGORA_LIVE_BENCH_S=60 runs the live ones at full length
#
# make native    rebuild the extensions after a change of C++ code
# make lint      run ruff, import-linter and clang-format
# make format    format the Python and C++ code
# make types     run mypy
# make unit      run the unit tests
# make cpp-test  run the C++ tests under sanitizers
# make clean     remove .venv and everything that was built
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
CMAKE := $(VENV)/bin/cmake
CTEST := $(VENV)/bin/ctest
# ninja chooses its number of jobs itself; it warns if MAKEFLAGS names make's job server
BUILD := MAKEFLAGS= $(CMAKE) --build
# One process per core. A process runs all tests of a file, so that what they share is made once.
# Folders run in the order given; name those with the slowest files first.
# Each process reads all files of tests. What one has compiled of them, the others need not.
KEEPING_BYTECODE := env PYTHONDONTWRITEBYTECODE=
PYTEST := $(KEEPING_BYTECODE) $(PY) -m pytest -q --numprocesses auto --dist loadfile \
  --no-loadscope-reorder
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export RAY_USAGE_STATS_ENABLED := 0
export RAY_worker_niceness := 0

.PHONY: setup copied moved packages extensions help native run test test-long check lint format
.PHONY: types unit cpp-test cpu-test ray-test bytecode bench clean

setup: $(VENV)/.ready native

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

# In a copied folder, the scripts of .venv would run, and install into, the original.
FOREIGN := $(shell its=$$(head -n 3 $(VENV)/bin/agora 2>/dev/null | \
  grep -o -m 1 '/[^" ]*/bin/python') && ! [ "$${its%/python}" -ef $(VENV)/bin ] && echo yes)

copied:
	@echo "$(VENV) is that of another folder: it is made anew"
	rm -rf $(VENV)

# The installation lists the packages when it is made, so one that moved needs a new installation.
PACKAGES := $(shell find flowsolver shared_state schedulers parsync experiments \
  -name __init__.py | LC_ALL=C sort | cksum | cut -d ' ' -f 1)
MOVED := $(filter-out $(PACKAGES),$(shell cat $(VENV)/.packages 2>/dev/null))

moved:
	@echo "packages have moved: they are installed anew"

$(VENV)/.ready: pyproject.toml $(if $(FOREIGN),copied) $(if $(MOVED),moved)
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) -m pip install --quiet \
	  "scikit-build-core>=0.11,<2" "nanobind>=2.4,<4" "cmake>=3.25,<5" "ninja>=1.11"
	$(MAKE) --jobs 2 packages extensions
	$(PY) -m pip install --quiet --no-build-isolation --editable ".[dev]"
	echo $(PACKAGES) > $(VENV)/.packages
	touch $@

# The extensions are compiled while the packages that Agora needs are fetched.
packages:
	$(PY) -c 'import tomllib; its = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print(*its["dependencies"], *its["optional-dependencies"]["dev"], sep="\n")' \
	  > $(VENV)/packages.txt
	$(PY) -m pip install --quiet --requirement $(VENV)/packages.txt

# Rebuilds only what changed; the extension modules land beside their packages.
native: $(VENV)/.ready
	@$(MAKE) --no-print-directory extensions

extensions:
	@mkdir -p build
	@if [ -f build/release/CMakeCache.txt ] && ! [ . -ef \
	  "$$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' build/release/CMakeCache.txt)" ]; then \
	  echo "build/release is that of another folder: it is made anew"; rm -rf build/release; fi
	@$(CMAKE) -S . -B build/release -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(PY) \
	  -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(VENV)/bin/ninja > build/configure.log 2>&1 \
	  || (cat build/configure.log; exit 1)
	@$(BUILD) build/release

run: setup bytecode
	$(VENV)/bin/agora run

check: setup lint types unit

lint:
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports
	git ls-files '*.cpp' '*.hpp' | xargs $(VENV)/bin/clang-format --dry-run --Werror

format:
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	git ls-files '*.cpp' '*.hpp' | xargs $(VENV)/bin/clang-format -i

types:
	$(VENV)/bin/mypy

unit:
	$(PYTEST) tests/unit

# ASan and UBSan run all tests; TSan runs those with threads: the solver's races, and cancelling.
cpp-test: setup
	$(CMAKE) -S . -B build/asan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DAGORA_SANITIZE=address
	$(BUILD) build/asan
	$(LONG) $(CTEST) --test-dir build/asan --output-on-failure --parallel 2
	$(CMAKE) -S . -B build/tsan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DAGORA_SANITIZE=thread
	$(BUILD) build/tsan --target flowsolver_race flowsolver_cancel
	$(CTEST) --test-dir build/tsan --output-on-failure \
	  --tests-regex '^flowsolver_(race|cancel)$$'

# The tests on Ray mostly wait, so all other tests run beside them, with a lower priority.
BOTH := --jobs 2 ray-test cpu-test

test: setup lint
	$(MAKE) $(BOTH)

test-long: setup lint
	$(MAKE) $(BOTH) PROFILE=long
	$(PY) -m tests.mutation_check

PROFILE := push
# tests/cpp/check.hpp
LONG := $(if $(filter long,$(PROFILE)),AGORA_TEST_LONG=1)
cpu-test: bytecode
	nice -n 5 $(MAKE) types cpp-test
	nice -n 5 $(PYTEST) --hypothesis-profile=$(PROFILE) tests/replay tests/properties tests/unit

# Runs start a dozen processes, and tests hundreds. Where Python is told to write no bytecode (as
# images of containers like to), each would compile the same modules: a quarter of its start.
bytecode: setup
	@$(PY) -m compileall -q flowsolver shared_state schedulers parsync experiments tests/fixtures

# Two processes. All tests that use the embedded Ray run in one of them (tests/ray/conftest.py).
ray-test: bytecode
	$(KEEPING_BYTECODE) $(PY) -m pytest -q --numprocesses 2 --dist loadfile tests/ray

bench: setup
	$(PY) -m tests.benchmarks.report

clean:
	rm -rf build $(VENV)
	rm -f flowsolver/*.so shared_state/*.so schedulers/*.so parsync/*/*.so
