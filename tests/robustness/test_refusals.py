"""Every wrong call gets a sentence that names what is wrong: the tables beside this file say which."""

import re
import sys

import pytest
from robustness.calls import (
    beams,
    joints,
    lie,
    loads,
    options,
    recording,
    schemes,
    sections,
    statics,
    steppers,
    systems,
)

import fdgeom as fg

ROOMS = (
    beams,
    sections,
    loads,
    joints,
    systems,
    steppers,
    schemes,
    statics,
    recording,
    options,
    lie,
)
CASES = [
    pytest.param(*case, id=f"{room.__name__.rpartition('.')[2]}-{number}-{case[0]}")
    for room in ROOMS
    for number, case in enumerate(room.REFUSALS, start=1)
]

# What only those can read who wrote it: addresses, files of the machine, trees of expressions, C.
_NOISE = re.compile(r"\n|0x[0-9a-f]{6}|Traceback|site-packages|dx\(<|w₀|v_0|\{ |\\x1b")


@pytest.mark.parametrize(("argument", "call", "error", "sentence"), CASES)
def test_refusal(argument, call, error, sentence):
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    # "…" stands for what differs with the machine or with round-off.
    pattern = ".+?".join(map(re.escape, sentence.split("…")))
    assert re.fullmatch(pattern, message), message
    assert argument in message
    assert len(message) < 400
    assert not _NOISE.search(message)


def test_there_are_enough_of_them():
    """At least two hundred calls, with every public class among them."""
    assert len(CASES) >= 200
    called = set()
    for room in ROOMS:
        called |= set(re.findall(r"fg\.(\w+)", _source(room)))
    classes = {name for name in fg.__all__ if isinstance(getattr(fg, name), type)}
    # Errors are raised, not called; PETSc makes a LocalNewton, a ChainNewton and a ChainLU.
    made = {"LocalNewton", "ChainNewton", "ChainLU"}
    assert classes - called <= {"StepFailed", "LoadStepFailed"} | made


def _source(module) -> str:
    with open(sys.modules[module.__name__].__file__) as file:
        return file.read()
