"""The page of verification, from what the tests kept in ``tests/verification/record.json``."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from markdown import table

HERE = Path(__file__).parent
RECORD = HERE.parents[1] / "tests" / "verification" / "record.json"


def write(source: Path) -> None:
    """Put the page among the sources."""
    rows = list(json.loads(RECORD.read_text()).values())
    parts = [(HERE / "verification_head.rst").read_text(), agreement(rows), claims(rows)]
    parts.append((HERE / "verification_audit.rst").read_text())
    (source / "verification.rst").write_text("\n\n".join(parts))


def number(x: float) -> str:
    """Seven digits."""
    return f"{x:.7g}"


def observed(row: dict) -> tuple[str, str]:
    """Observed order of the last two meshes, and the limit that the last two values point to."""
    meshes, values, reference = row["meshes"], row["values"], row["reference"]
    if len(values) < 3:
        return "–", "–"
    ratio = meshes[-1] / meshes[-2]
    changes = [b - a for a, b in pairwise(values)]
    if min(map(abs, changes)) < 1e-9 * abs(reference or 1.0):
        return "exact", number(values[-1])
    # From the values alone: the reference has digits of its own.
    order = math.log(abs(changes[-2] / changes[-1])) / math.log(ratio)
    limit = values[-1] + changes[-1] / (ratio**order - 1)
    return f"{order:.2f}", number(limit)


def agreement(rows: list[dict]) -> str:
    """Values on meshes beside references, a table for each problem, with its source and its tests."""
    out = ["Values beside references", "------------------------", ""]
    problems = defaultdict(list)
    for row in rows:
        if row["kind"] == "values":
            problems[row["problem"]].append(row)
    for problem, found in problems.items():
        out += [problem, "~" * len(problem), ""]
        same = len({(tuple(row["meshes"]), row["by"]) for row in found}) == 1
        meshes, by = found[0]["meshes"], found[0]["by"]
        heads = [f"{n} {by}" for n in meshes] if same else ["fdgeom"]
        body = [["quantity", *heads, "order", "limit", "reference"]]
        for row in found:
            pairs = zip(row["meshes"], row["values"], strict=True)
            values = [number(v) if same else f"{number(v)} ({n} {row['by']})" for n, v in pairs]
            order, limit = observed(row)
            body.append([row["quantity"], *values, order, limit, number(row["reference"])])
        out += [*table(body), ""]
        sources = "; ".join(dict.fromkeys(row["source"] for row in found))
        tests = ", ".join(dict.fromkeys(f"``tests/{row['test']}``" for row in found))
        out += [f"Reference: {sources}. By {tests}.", ""]
    return "\n".join(out)


def claims(rows: list[dict]) -> str:
    """What steppers claim, and what was measured."""
    out = ["What steppers claim, and what was measured", "-" * 42, ""]
    out += ["Orders of convergence in time", "~" * 29, ""]
    body = [["stepper", "on", "claimed", "observed"]]
    for row in sorted((r for r in rows if r["kind"] == "order"), key=lambda r: r["stepper"]):
        body.append(
            [f"``{row['stepper']}``", row["system"], str(row["claimed"]), f"{row['measured']:.2f}"]
        )
    out += [*table(body), "", "Structure", "~" * 9, ""]
    out += [
        "The defect of a claim lies below its bound; that of a denial above it, so that *no* is a "
        "finding too.",
        "",
    ]
    body = [["stepper", "trait", "claimed", "on", "defect", "bound"]]
    order = {"symmetric": 0, "symplectic": 1}
    for row in sorted(
        (r for r in rows if r["kind"] == "defect"),
        key=lambda r: (order.get(r["trait"], 2), r["trait"], r["stepper"]),
    ):
        sign = "<" if row["claimed"] else ">"
        body.append([
            f"``{row['stepper']}``", row["trait"], "yes" if row["claimed"] else "no", row["system"],
            f"{row['measured']:.1e}", f"{sign} {row['bound']:.0e}",
        ])  # fmt: skip
    return "\n".join([*out, *table(body), ""])
