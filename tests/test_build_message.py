"""A line is said where a compiler keeps somebody waiting, and none elsewhere."""

import threading

import pytest

from fdgeom import build_message as module
from fdgeom.build_message import compiling


def in_file(name, body):
    """A call of ``body`` from a function that stands in a file of that name."""
    names = {}
    exec(compile("def make_so(body):\n    body()\n", name, "exec"), names)
    names["make_so"](body)


@pytest.fixture
def said(monkeypatch):
    """What has been said, and an event for it; nobody is patient."""
    lines, event = [], threading.Event()

    def say(text):
        lines.append(text)
        event.set()

    monkeypatch.setattr(module, "_say", say)
    monkeypatch.setattr(module, "_said", set())
    monkeypatch.setattr(module, "_LOOK", 0.001)
    monkeypatch.setattr(module, "PATIENCE", 0.002)
    return lines, event


@pytest.mark.parametrize(
    "file", ["/env/lib/tsfc/driver.py", "/env/lib/loopy/schedule.py", "/env/pyop2/compilation.py"]
)
def test_a_line_once(said, file):
    lines, event = said
    for _ in range(2):
        with compiling("RATTLE"):
            in_file(file, lambda: event.wait(60))
    assert len(lines) == 1
    assert lines[0].startswith("fdgeom: compiling the forms of RATTLE")


def test_silent_where_nothing_is_compiled(said, monkeypatch):
    """However long it takes: a hundred looks, and nobody in a compiler."""
    lines, _ = said
    looked, seen = threading.Semaphore(0), module._compiles

    def look(thread):
        looked.release()
        return seen(thread)

    monkeypatch.setattr(module, "_compiles", look)
    with compiling("RATTLE"):
        for _ in range(100):
            in_file("/env/lib/somewhere/else.py", lambda: looked.acquire(timeout=60))
    assert lines == []


def test_loggers_say_it_and_may_be_silenced(caplog, monkeypatch):
    module._say("a line")
    assert caplog.messages == ["a line"]
    monkeypatch.setattr(module.logger, "level", 30)
    monkeypatch.setattr(module, "_watching", None)  # not even looked at
    with compiling("RATTLE"):
        pass
