# The short front door; CMake (CMakePresets.json) does the building, tools/setup.py the setting up.
# `make help` lists what there is.

PYTHON ?= python3
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 600
VENV := .venv/bin
GPU_PYTHON ?= python3
PREFIX ?= /usr/local
GPUS ?= 1
PES ?= 2
CTEST = ctest --output-on-failure -j$(JOBS)
C_FILES = $(shell git ls-files --cached --others --exclude-standard 'src/*.[ch]' 'include/*.h' 'tests/*.[ch]' 'examples/*.[ch]')
PY_PATHS = python tools tests examples bench

export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := default
.PHONY: default help build setup setup-build setup-run setup-test install uninstall demo test test-c test-python test-rounds check \
        check-globals check-api check-arm check-format check-tidy check-python format docs test-gpu bench-gpu bench-ag-gemm bench-barriers bench-sim bench-ptx \
        fresh-clone corpus check-corpus check-ptxas check-mutants check-link-pairs fuzz test-fuzz nightly wheel clean

default: build
	@echo
	@echo "Built build/release/bin/intarsia. Next: 'make demo' runs the first example, 'make test' all tests,"
	@echo "'make help' lists the rest; 'build/release/bin/intarsia help' tells what the program does."

help: ## this list
	@echo "make TARGET, with TARGET one of"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/    \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'
	@echo
	@echo "and with these on the same line: PYTHON=python3.12 (another interpreter for .venv), JOBS=4 (parallel jobs);"
	@echo "INTARSIA_CUDA=wheels takes NVRTC from PyPI although a CUDA toolkit is there."

# -- setting up and building ---------------------------------------------------------------------------------------------

setup: setup-test ## everything that building, running and testing need (a second run takes a second)

setup-build setup-run setup-test: setup-%:
	@$(PYTHON) tools/setup.py $*

build/%/CMakeCache.txt: CMakePresets.json
	@cmake --preset $* >build/cmake-$*.log 2>&1 || { cat build/cmake-$*.log; exit 1; }
	@touch $@

build: setup-build build/release/CMakeCache.txt ## the program and the libraries, optimised, in build/release
	@cmake --build --preset release --target programs

build-tests-%: setup-test
	@$(MAKE) build/$*/CMakeCache.txt
	@cmake --build --preset $*

# -- installing ----------------------------------------------------------------------------------------------------------

install: build ## headers, libraries, program and man page: make install PREFIX=/usr/local (DESTDIR is honoured)
	@DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)" >/dev/null
	@echo "installed into $(DESTDIR)$(PREFIX); docs/c-api.md tells how C programs use it and how it is removed"

uninstall: ## removes what `make install` with the same PREFIX and DESTDIR has put there
	@cmake -P "$(DESTDIR)$(PREFIX)/lib/intarsia/uninstall.cmake"

# -- running -------------------------------------------------------------------------------------------------------------

demo: setup-run build ## the examples on 2 and on 4 simulated PEs
	@$(VENV)/python tools/demo.py

# -- testing -------------------------------------------------------------------------------------------------------------

# The slowest and most telling come last, so that the output ends with pytest's summary.
test: setup-test check-globals check-api check-format check-python test-c-asan-gcc test-c-asan-clang test-c-release test-fuzz test-python ## everything: checks, C tests (sanitizers with gcc and clang, release), a minute of fuzzing, Python tests

test-c: test-c-asan-gcc ## the C tests under AddressSanitizer and UndefinedBehaviorSanitizer

test-c-%: build-tests-%
	@echo "== C tests, $*"
	@$(CTEST) --preset $*

test-rounds: build-tests-release ## 10,000 rounds of each kind of barrier between simulated PEs, instead of some hundred
	@INTARSIA_TEST_ROUNDS=10000 build/release/bin/test_comm_comm

test-python: build-tests-release build-tests-asan-gcc ## the Python tests and those of the command line
	@echo "== Python tests"
	@INTARSIA_TEST_PROGRAM=$(CURDIR)/build/asan-gcc/bin/intarsia $(VENV)/python -m pytest -n $(JOBS) $(PYTEST_ARGS)

test-fuzz: build-tests-release build-tests-fuzz
	@echo "== fuzzing, one minute"
	@$(VENV)/python tests/fuzz/fuzz.py --seconds 60 --jobs $(JOBS)

fuzz: build-tests-release build-tests-fuzz ## fuzzing parser, linker and simulator, and ptxas as the judge: make fuzz FUZZ_SECONDS=600
	@$(VENV)/python tests/fuzz/fuzz.py --seconds $(FUZZ_SECONDS) --jobs $(JOBS) --keep --ptxas 300

nightly: fuzz check-mutants check-corpus ## what takes too long for `make test`: ten minutes of fuzzing, the corpus (.ci/nightly)

test-gpu: build setup-test ## the tests that need a GPU, with the Python that has torch: make test-gpu GPU_PYTHON=python3
	@$(GPU_PYTHON) -m pytest tests/gpu $(PYTEST_ARGS)

bench-sim: setup-run build ## the simulator's speed: warp-instructions/s, FLOP/s of mma, the all-gather GEMM
	@cmake --build --preset release --target bench_sim >/dev/null
	@build/release/bin/bench_sim
	@$(VENV)/python bench/sim_example.py

bench-ptx: build setup-run ## the PTX library's speed and memory beside LLVM's; also KERNEL=calls-a-region.ptx REGION=region.ptx
	@cmake --build --preset release --target bench_ptx >/dev/null
	@$(VENV)/python bench/ptx.py $(if $(KERNEL),--kernel "$(KERNEL)" --region "$(REGION)") $(BENCH_ARGS)

bench-gpu: build ## figures on a GPU: waits in a product, linking NVSHMEM
	@PYTHONPATH=python $(GPU_PYTHON) bench/gpu.py

bench-ag-gemm: build ## all-gather GEMM on GPUS=1 GPUs beside torch's: a table in build/ag_gemm.csv, .json, .png
	@PYTHONPATH=python $(GPU_PYTHON) -m torch.distributed.run --nproc_per_node=$(GPUS) bench/ag_gemm.py --tune \
	    --out build/ag_gemm $(BENCH_ARGS)

bench-barriers: build ## barriers inside kernels beside NVSHMEM's, between PES=2 PEs on the GPUs that there are
	@PYTHONPATH=python INTARSIA_PYTHON=$(GPU_PYTHON) build/release/bin/intarsia run -n $(PES) bench/barriers.py $(BENCH_ARGS)

check: check-globals check-api check-format check-python check-tidy ## what can be said without running: globals, comments of the API, format, clang-tidy, ruff, mypy

check-globals: build-tests-release
	@tools/check-globals.sh build/release/lib/libintarsia.a

check-api: setup-test
	@$(VENV)/python tools/check-api.py include/intarsia/*.h

check-format: setup-test
	@clang-format --dry-run -Werror $(C_FILES)
	@echo "clang-format: $(words $(C_FILES)) files are as they should be"

check-arm: ## that the simulator compiles for 64-bit Arm, with Debian's gcc-aarch64-linux-gnu
	@tools/check-arm.sh

check-tidy: build-tests-asan-clang
	@tools/check-tidy.sh build/asan-clang

check-python: setup-test
	@$(VENV)/ruff check --quiet $(PY_PATHS)
	@$(VENV)/mypy
	@echo "ruff, mypy: no complaint"

format: setup-test ## formats C and Python as the checks want them
	@clang-format -i $(C_FILES)
	@$(VENV)/ruff check --quiet --fix $(PY_PATHS)

docs: build ## docs/command-line.md from what the program says
	@build/release/bin/intarsia help --markdown >docs/command-line.md

fresh-clone: ## the README's commands in a fresh clone with empty caches (about ten minutes)
	@tools/fresh-clone-check.sh

# -- the PTX corpus ------------------------------------------------------------------------------------------------------

corpus: setup-test ## PTX of every producer, in build/corpus (docs/corpus.md)
	@$(VENV)/python tests/corpus/generate.py --jobs $(JOBS)

check-corpus: corpus build ## the corpus: same machine code after parse and print, NumPy's results in the simulator, linking (long)
	@$(VENV)/python tests/corpus/roundtrip.py --verify --jobs $(JOBS)
	@$(VENV)/python tests/corpus/roundtrip.py --rename --jobs $(JOBS)
	@$(VENV)/python tests/corpus/run_sim.py --jobs $(JOBS)
	@$(VENV)/python tests/corpus/run_sim.py --arch sm_90a --only 'cuda/*' --jobs $(JOBS)
	@$(VENV)/python tests/corpus/link_pairs.py --jobs $(JOBS)

check-ptxas: setup-test build ## every form of the opcode tables, in every version and for every target, and spoiled ones: what ptxas says
	@$(VENV)/python tests/ptx/against_ptxas.py forms --jobs $(JOBS)
	@$(VENV)/python tests/ptx/against_ptxas.py spoiled --jobs $(JOBS)

check-mutants: setup-test build ## right PTX files with a word spoiled: what the verifier and ptxas say of each
	@$(VENV)/python tests/fuzz/mutants.py --jobs $(JOBS)

check-link-pairs: corpus build ## every kernel of the corpus linked with every device file that fits it (hours)
	@$(VENV)/python tests/corpus/link_pairs.py --all --together 4 --jobs $(JOBS)

# -- the rest ------------------------------------------------------------------------------------------------------------

wheel: setup-run ## a wheel in dist/, for this machine's system (it needs its xxHash and cJSON)
	@rm -rf dist
	@$(VENV)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean: ## removes build/ (keeps .venv)
	rm -rf build
