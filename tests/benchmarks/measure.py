"""Timing of several programs in turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping


def slice_of(program, steps: int, clock=time.thread_time) -> tuple[float, float]:
    """Seconds of some steps, and of what a compiled call needs before and after them.

    By default of this thread's processor, which on an idle machine are those of the clock.
    """
    zero = clock()
    if hasattr(program, "begin"):
        program.begin()
    first = clock()
    program.advance(steps)
    last = clock()
    if hasattr(program, "end"):
        program.end()
    return last - first, clock() - last + first - zero


def seconds_per_step(program, seconds: float) -> float:
    """A first estimate, from steps that together take a quarter of ``seconds`` or more."""
    steps = 1
    slice_of(program, 1)  # compiles what is still to be compiled
    while (taken := slice_of(program, steps)[0]) < seconds / 4:
        steps *= 2
    return taken / steps


def in_turns(
    programs: Mapping[str, object], *, rounds: int, seconds: float, state=None
) -> dict[str, float]:
    """Seconds per step: the least of some rounds in which the programs take turns, A B C A B C ...

    In a round all take the same steps from the same state, as many as the first program takes in
    ``seconds``; slow programs fewer. One whose single step is far longer is in two rounds only.
    """
    if state is not None:
        for program in programs.values():
            program.restart(state)
    about = {name: seconds_per_step(program, seconds) for name, program in programs.items()}
    most = max(1, round(seconds / next(iter(about.values()))))
    steps = {name: max(1, min(most, round(3 * seconds / t))) for name, t in about.items()}
    best = dict.fromkeys(programs, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for round_ in range(rounds):
            for name, program in programs.items():
                if round_ >= 2 and about[name] > 10 * seconds:
                    continue
                if state is not None:
                    program.restart(state)
                best[name] = min(best[name], slice_of(program, steps[name])[0] / steps[name])
    finally:
        gc.enable()
    return best
