"""Rounds of tests: the quick one of `make test`, and the long ones, listed in long.txt.

``quick`` and ``long`` are all tests without and with a line in the list. CI divides the long ones:
``always`` are those on several ranks and those marked ``always`` (code of the README, command
line), ``rotating`` all others, in another order for each commit and as many as the time allows.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

_LIST = Path(__file__).with_name("long.txt")
#: Why a test of a round does not run.
_LATE = "not reached: the time given by --minutes was over"


def add_options(parser) -> None:
    """The command line of rounds."""
    group = parser.getgroup("rounds")
    group.addoption(
        "--round", choices=sorted(_ROUNDS), help="only these tests: see tests/rounds.py"
    )
    group.addoption("--minutes", type=float, help="start no test after so many minutes")
    group.addoption("--order", help="files in an order that derives from this text")
    group.addoption("--least", type=int, help="fail where fewer tests pass")


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


def _always(item) -> bool:
    return any(map(item.get_closest_marker, ("parallel", "always")))


# Which tests a round has, by the test and whether it is long.
_ROUNDS: dict[str, Callable] = {
    "quick": lambda item, long: not long,
    "long": lambda item, long: long,
    "always": lambda item, long: long and _always(item),
    "rotating": lambda item, long: long and not _always(item),
}


def shuffled(nodes: Iterable[str], order: str) -> list[str]:
    """Tests file by file; the order of the files derives from a text, that in a file stays."""
    files: dict[str, list[str]] = {}
    for node in nodes:
        files.setdefault(node.partition("::")[0], []).append(node)
    names = sorted(files)
    random.Random(order).shuffle(names)
    return [node for name in names for node in files[name]]


class Rounds:
    """Keeps the tests of one round, in its order; starts none when its time is over, and says so."""

    def __init__(self, config) -> None:
        option = config.getoption
        self._which, self._order, self._least = (
            option("--round"),
            option("--order"),
            option("--least"),
        )
        self._minutes = option("--minutes")
        self._end = None if self._minutes is None else time.monotonic() + 60 * self._minutes
        if self._order is not None and hasattr(config.option, "loadscopereorder"):
            # xdist would begin with the files of most tests.
            config.option.loadscopereorder = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items) -> None:
        """Leave out other rounds."""
        if self._which is not None:
            listed = set(long_tests())
            if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
                missing = unknown([item.nodeid for item in items], listed)
                if missing:
                    raise pytest.UsageError(
                        f"tests/long.txt names what is no test: {sorted(missing)}"
                    )
            wanted = _ROUNDS[self._which]
            kept = [item for item in items if wanted(item, is_long(item.nodeid, listed))]
            config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
            items[:] = kept
        if self._order is not None:
            by_name = {item.nodeid: item for item in items}
            items[:] = [by_name[node] for node in shuffled(by_name, self._order)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item) -> None:
        """Do not begin too late."""
        if self._end is not None and time.monotonic() > self._end:
            pytest.skip(_LATE)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report):
        """Tests that were not reached are counted by themselves, not among those skipped."""
        if report.skipped and isinstance(report.longrepr, tuple) and _LATE in report.longrepr[2]:
            return "not reached", "-", "NOT REACHED"
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session) -> None:
        """Fail where too few tests passed. Workers of xdist report to the process that started them."""
        stats = _stats(session.config)
        if self._least is None or stats is None or hasattr(session.config, "workerinput"):
            return
        if session.exitstatus == pytest.ExitCode.OK and len(stats.get("passed", ())) < self._least:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """Say what was not reached, and whether enough passed."""
        late = terminalreporter.stats.get("not reached", ())
        if late:
            terminalreporter.section(f"not reached in {self._minutes:g} minutes")
            for file, count in sorted(Counter(r.nodeid.partition("::")[0] for r in late).items()):
                terminalreporter.line(f"{file}: {count}")
        passed = len(terminalreporter.stats.get("passed", ()))
        if self._least is not None and passed < self._least:
            terminalreporter.line(
                f"{passed} tests passed, at least {self._least} are wanted", red=True
            )


def _stats(config):
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return None if reporter is None else reporter.stats
