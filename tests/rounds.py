"""Two rounds of tests: those that `make test` runs, and the long ones, listed in long.txt."""

import time
from collections.abc import Iterable
from pathlib import Path

import pytest

_LIST = Path(__file__).with_name("long.txt")


def long_tests() -> list[str]:
    """The lines of the list: files, tests of all parameters, or single tests, below this folder."""
    lines = (line.strip() for line in _LIST.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def is_long(node: str, listed: Iterable[str]) -> bool:
    """Whether a test, named as pytest does, is in the list."""
    return not _names(node).isdisjoint(listed)


def unknown(nodes: Iterable[str], listed: Iterable[str]) -> list[str]:
    """What the list names and is no test."""
    known = set().union(*map(_names, nodes))
    return [name for name in listed if name not in known]


def _names(node: str) -> set[str]:
    test = node.removeprefix("tests/")
    return {test, test.partition("[")[0], test.partition("::")[0]}


class Rounds:
    """Keeps the tests of one round, and starts none when its time is over."""

    def __init__(self, which: str, minutes: float | None) -> None:
        self._which = which
        self._end = None if minutes is None else time.monotonic() + 60 * minutes

    def pytest_collection_modifyitems(self, config, items) -> None:
        """Leave out the other round."""
        listed = set(long_tests())
        if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
            missing = unknown([item.nodeid for item in items], listed)
            if missing:
                raise pytest.UsageError(f"tests/long.txt names what is no test: {sorted(missing)}")
        left = [
            item for item in items if is_long(item.nodeid, listed) is not (self._which == "long")
        ]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]

    def pytest_runtest_setup(self, item) -> None:
        """Skip what would begin too late."""
        if self._end is not None and time.monotonic() > self._end:
            pytest.skip("the time given by --minutes is over")
