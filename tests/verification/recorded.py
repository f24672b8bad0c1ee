"""What tests measure, kept for the page of verification: ``record.json``, written by `make verification`.

A test that shows an agreement with a reference, or what a stepper keeps, hands its numbers to the
fixture ``recorded``. With ``--record`` they are written; without it they are compared with what is
kept, so that the page says what the tests find.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("record.json")
#: Part of the distance from the reference by which values may differ from machine to machine.
NEAR = 0.1
#: Defects below this are round-off: only their bound is compared.
ROUND_OFF = 1e-9


class Recorded:
    """The numbers of one test.

    Parameters
    ----------
    test : str
        The test, as pytest calls it.
    kept : dict
        What is kept of all tests.
    writes : bool
        Whether to keep the numbers, instead of comparing them.
    """

    def __init__(self, test: str, kept: dict, writes: bool) -> None:
        self.test, self.kept, self.writes = test, kept, writes

    def values(
        self,
        problem: str,
        quantity: str,
        *,
        reference: float,
        source: str,
        meshes: Sequence[int],
        values: Sequence[float],
        by: str = "cells",
    ) -> None:
        """Values on finer and finer meshes, or in shorter and shorter steps, and what they should be."""
        row = {
            "kind": "values",
            "test": self.test,
            "problem": problem,
            "quantity": quantity,
            "reference": float(reference),
            "source": source,
            "by": by,
            "meshes": [int(n) for n in meshes],
            "values": [float(v) for v in values],
        }
        assert len(row["meshes"]) == len(row["values"]) >= 1
        assert np.all(np.isfinite(row["values"]))
        self._put(f"{self.test} | {problem} | {quantity}", row)

    def defect(
        self, stepper: str, trait: str, system: str, *, claimed: bool, measured: float, bound: float
    ) -> None:
        """How far a stepper is off what it claims (below the bound) or denies (above it)."""
        row = {
            "kind": "defect",
            "test": self.test,
            "stepper": stepper,
            "trait": trait,
            "system": system,
            "claimed": bool(claimed),
            "measured": float(measured),
            "bound": float(bound),
        }
        assert bool(measured < bound) is bool(claimed)
        self._put(f"{self.test} | {stepper} | {trait} | {system}", row)

    def order(
        self,
        stepper: str,
        system: str,
        *,
        claimed: int,
        measured: float,
        steps: Sequence[int],
        errors: Sequence[float],
    ) -> None:
        """The observed order of convergence of a stepper, from its errors with numbers of steps."""
        row = {
            "kind": "order",
            "test": self.test,
            "stepper": stepper,
            "system": system,
            "claimed": int(claimed),
            "measured": round(float(measured), 2),
            "steps": [int(n) for n in steps],
            "errors": [float(e) for e in errors],
        }
        assert len(row["steps"]) == len(row["errors"]) >= 2
        self._put(f"{self.test} | {stepper} | order | {system}", row)

    def _put(self, key: str, row: dict) -> None:
        if self.writes:
            self.kept[key] = row
            return
        assert key in self.kept, f"not in {FILE.name}: run `make verification`"
        differs = different(row, self.kept[key])
        assert not differs, f"{differs}; if it is meant: `make verification`"


def different(found: dict, kept: dict) -> str:
    """What differs between a row that is found and the one that is kept; nothing if they agree."""
    numbers = {"values", "measured", "reference", "test", "errors"}
    for name in found.keys() - numbers:
        if found[name] != kept.get(name):
            return f"{name} is {found[name]!r}, kept is {kept.get(name)!r}"
    if found["kind"] == "order":
        apart = abs(found["measured"] - kept["measured"])
        if apart >= 0.05:
            return f"order {found['measured']}, kept {kept['measured']}"
        for new, old in zip(found["errors"], kept["errors"], strict=True):
            if abs(new - old) > NEAR * old + ROUND_OFF:
                return f"error {new} instead of {old}"
        return ""
    if found["kind"] == "defect":
        small = max(found["measured"], kept["measured"]) < ROUND_OFF
        # A defect that is none of round-off has a size of its own.
        apart = abs(math.log2(max(found["measured"], 1e-300) / max(kept["measured"], 1e-300)))
        return (
            "" if small or apart < 1 else f"measured {found['measured']}, kept {kept['measured']}"
        )
    size = max(abs(kept["reference"]), 1e-12)
    if abs(found["reference"] - kept["reference"]) > 1e-6 * size:
        return f"the reference is {found['reference']}, kept is {kept['reference']}"
    for new, old in zip(found["values"], kept["values"], strict=True):
        if abs(new - old) > NEAR * abs(old - kept["reference"]) + 1e-9 * size:
            return f"{found['quantity']}: {new} instead of {old}"
    return ""


def read() -> dict:
    """All that is kept."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def write(kept: dict) -> None:
    """Keep it, in an order that does not change."""

    def digits(value):
        if isinstance(value, float):
            return float(f"{value:.9g}")
        return [digits(v) for v in value] if isinstance(value, list) else value

    rows = {key: {k: digits(v) for k, v in kept[key].items()} for key in sorted(kept)}
    FILE.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


def orders(meshes: Sequence[int], errors: Sequence[float]) -> list[float]:
    """Observed orders between neighbouring meshes."""
    n, e = np.array(meshes, dtype=float), np.abs(errors)
    return (np.log(e[:-1] / e[1:]) / np.log(n[1:] / n[:-1])).tolist()
