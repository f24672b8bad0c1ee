"""Every wrong call gets a sentence that names what is wrong: the tables beside this file say which."""

import re
from collections import Counter

import pytest
from robustness.calls import (
    beams,
    contact,
    joints,
    lie,
    loads,
    operations,
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
    contact,
    joints,
    systems,
    operations,
    steppers,
    schemes,
    statics,
    recording,
    options,
    lie,
)


def _named(room):
    """The calls of a table: each by its argument, and which of those with this argument it is."""
    seen = Counter()
    for case in room.REFUSALS:
        seen[case[0]] += 1
        name = f"{room.__name__.rpartition('.')[2]}-{case[0]}-{seen[case[0]]}"
        yield pytest.param(*case, id=name)


CASES = [case for room in ROOMS for case in _named(room)]

# What only those can read who wrote it: addresses, files of the machine, trees of expressions, C.
_NOISE = re.compile(r"\n|0x[0-9a-f]{6}|Traceback|site-packages|dx\(<|w₀|v_0|\{ |\\x1b")


PUBLIC = {value for value in map(fg.__dict__.get, fg.__all__) if isinstance(value, type)}
#: By the name of a test: classes whose code refused its call.
REFUSED_BY: dict[str, set[type]] = {}


@pytest.mark.parametrize(("argument", "call", "error", "sentence"), CASES)
def test_refusal(argument, call, error, sentence, request):
    with pytest.raises(error) as caught:
        call()
    REFUSED_BY[request.node.nodeid] = classes_in(caught.tb)
    message = str(caught.value)
    # "…" stands for what differs with the machine or with round-off.
    pattern = ".+?".join(map(re.escape, sentence.split("…")))
    assert re.fullmatch(pattern, message), message
    assert argument in message
    assert len(message) < 400
    assert not _NOISE.search(message)


def classes_in(traceback):
    """Public classes whose methods were running: of an object, or of the class itself."""
    found = set()
    while traceback is not None:
        names = traceback.tb_frame.f_locals
        for owner in (type(names.get("self")), names.get("cls")):
            mro = owner.__mro__ if isinstance(owner, type) else ()
            found |= PUBLIC & set(mro)
        traceback = traceback.tb_next
    return found


def test_there_are_enough_of_them():
    """At least two hundred calls, and every public class refuses one: its own code was running."""
    assert len(CASES) >= 200
    if len(REFUSED_BY) < 0.95 * len(CASES):
        pytest.skip("only after the calls of this file")
    refused = set().union(*REFUSED_BY.values())
    # Errors are raised, not called; PETSc makes a LocalNewton, a ChainNewton and a ChainLU; a law is
    # refused by the beam, a monitor of the energy by the run.
    others = {"LocalNewton", "ChainNewton", "ChainLU", "StepFailed", "LoadStepFailed"}
    assert {cls.__name__ for cls in PUBLIC - refused} <= others | {"SectionLaw", "Energy"}
