"""Shared by all tests: this folder is importable, so helpers are `verification.numpy_beam` etc."""

import gc
import os

import numpy as np
import pytest
from headers import precompiled
from ranks import run_on
from rounds import Rounds, add_options
from verification import recorded as records

precompiled()
# What loopy would keep of its own is kept by PyOP2 as compiled code already.
os.environ.setdefault("LOOPY_NO_CACHE", "1")
# Compiling forms makes millions of objects and few cycles: the collector would take a quarter of the time.
gc.set_threshold(100_000, 50, 50)
# PETSc reads pytest's command line; it need not list what it did not understand. Its handler of signals
# ends a process with a text that pytest captures; without it pytest shows the stack of a crash, and a
# connection to a browser that has gone is an exception, not a signal.
os.environ.setdefault("PETSC_OPTIONS", "-options_left 0 -no_signal_handler")


def pytest_addoption(parser):
    parser.addoption(
        "--record", action="store_true", help="keep the numbers of the page of verification"
    )
    parser.addoption(
        "--ranks", type=int, default=2, help="on how many ranks tests run that need several"
    )
    add_options(parser)


def pytest_configure(config):
    config.pluginmanager.register(Rounds(config))


def pytest_collection_modifyitems(config, items):
    """With ``--record`` only those tests run that have something to keep."""
    if config.getoption("--record"):
        kept = [item for item in items if "recorded" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


@pytest.fixture(scope="session")
def all_records():
    """What is kept of all tests."""
    return records.read()


@pytest.fixture
def recorded(request, all_records):
    """Takes the numbers that the page of verification shows."""
    test = request.node.nodeid.rpartition("tests/")[2]
    writes = request.config.getoption("--record")
    if writes:
        for key in [key for key in all_records if key.split(" | ")[0] == test]:
            del all_records[key]
    yield records.Recorded(test, all_records, writes)
    if writes:
        records.write(all_records)


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(20250)


@pytest.fixture(scope="session")
def several(request):
    """On how many ranks tests run that need several."""
    return request.config.getoption("--ranks")


@pytest.fixture
def on_ranks(tmp_path, request, several):
    """``on_ranks(script, ranks)``: the arrays that a module or file writes when run on so many ranks."""

    def run(script, ranks: int = several):
        file = tmp_path / f"on_{ranks}.npz"
        root = str(request.config.rootpath)
        path = os.pathsep.join([root, root + "/tests", os.environ.get("PYTHONPATH", "")])
        done = run_on(ranks, getattr(script, "__file__", script), file, PYTHONPATH=path)
        assert done.returncode == 0, done.stderr
        return np.load(file)

    return run
