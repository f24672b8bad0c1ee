# make demo    set up everything and run the flagship demo
# make test    set up everything and run the tests;  make test-all   the long ones too
# make docs    set up everything and build the site into build/site (3 minutes; demos are not run again)
# make verification   measure anew what the page of verification shows;  make gallery   its pictures
# make setup   only set up;  make lint;  make bench;  make measurements (of performance);  make clean
# On a fresh Debian 12 or Ubuntu machine with Python 3.11 or newer, the first set-up takes
# 13 to 25 minutes; after that seconds. PYTHON=... names another interpreter, ARGS=... is passed on,
# JOBS=... is how many test files run at once.
SHELL := bash
export OMP_NUM_THREADS := 1
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
export MPLBACKEND := Agg
PYTHON ?= python3
VPY := .venv/bin/python
# Test files run at once, a process each. nproc answers OMP_NUM_THREADS if that is set.
JOBS ?= $(shell n=$$(env -u OMP_NUM_THREADS nproc); echo $$((n < 4 ? n : 4)))

.PHONY: help setup demo test test-long test-all docs verification gallery bench measurements lint format clean

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -8

setup:
	@PYTHON=$(PYTHON) bash .setup/setup.sh

demo: setup
	@echo "Running demos/poisson_beam (about a minute the first time); output in demos/poisson_beam/output"
	@cd demos/poisson_beam && ../../$(VPY) -m fdgeom demo --force poisson_beam && ../../$(VPY) poisson_beam.py $(ARGS)

# Which of the long tests: all, or always and rotating, as CI divides them (tests/rounds.py).
ROUND ?= long

PYTEST = bash .setup/browser.sh && $(VPY) -m pytest -n $(JOBS) --dist loadfile

test: setup
	@echo "Running the tests (on two cores 25 minutes the first time on a machine, while forms are compiled; then 8). Those in tests/long.txt are run by make test-all"
	@$(PYTEST) --round quick $(ARGS)

test-long: setup
	@echo "Running the long tests (on two cores an hour the first time on a machine; then 20 minutes)"
	@$(PYTEST) --round $(ROUND) $(ARGS)

test-all: setup
	@echo "Running all tests (on two cores an hour and a half the first time on a machine; then half an hour)"
	@$(PYTEST) $(ARGS)

docs: setup
	@echo "Building the site into build/site; demos are not run again"
	@$(VPY) demos/site/build.py $(ARGS)

verification: setup
	@echo "Running the tests that have numbers for the page of verification, which are kept anew"
	@$(VPY) -m pytest --record -q $(ARGS)

gallery: setup
	@echo "Running all demos and drawing their pictures anew (three quarters of an hour; ARGS='poisson_beam four_bar' some)"
	@$(VPY) demos/site/pictures.py $(ARGS)

bench: setup
	@echo "Measuring fdgeom beside C, NumPy and (where installed) PyElastica: about 6 minutes, ARGS=--quick 1 minute"
	@$(VPY) tests/benchmarks/bench.py $(ARGS)
	@$(VPY) tests/benchmarks/implicit.py $(ARGS)

measurements: setup
	@echo "Measuring the times and errors that the site shows: about 10 minutes, ARGS=kept 1 minute"
	@$(VPY) tests/benchmarks/measurements.py $(ARGS)

lint: setup
	@$(VPY) -m ruff check . && $(VPY) -m ruff format --check . && $(VPY) -m mypy

format: setup
	@$(VPY) -m ruff check --fix . && $(VPY) -m ruff format .

clean:
	@rm -rf .venv .setup/log .pytest_cache .ruff_cache .mypy_cache *.egg-info demos/*/output $(filter-out demos/site/%,$(wildcard demos/*/*.py)) build tests/benchmarks/output
	@echo "Removed .venv and outputs; the shared Firedrake stays in the cache folder"
