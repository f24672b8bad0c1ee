"""The page of verification, from what the tests stored in ``tests/verification/record.json``."""

from __future__ import annotations

import json
import math
import re
from html import escape
from itertools import pairwise
from pathlib import Path

import numpy as np
from markdown import html_table

HERE = Path(__file__).parent
RECORD = HERE.parents[1] / "tests" / "verification" / "record.json"
#: Subjects of problems with references, by the beginning of the test's name.
SUBJECTS = {
    "sections": "Sections",
    "statics/test_equilibrium": "Equilibria of one beam",
    "statics/test_frames": "Equilibria of frames",
    "statics/test_modes": "Vibrations",
    "verification": "Motion of beams and assemblies",
    "": "Others",
}
#: Families of steppers, in the same way.
FAMILIES = {
    "steppers/test_hamiltonian": "Hamiltonian systems",
    "steppers/test_order": "Beams by their bracket",
    "steppers/test_variational": "Beams in configuration form",
    "steppers/test_energy_momentum": "Beams in configuration form",
    "steppers/test_generalized_alpha": "Second-order systems",
    "steppers/test_fourth_order": "Second-order systems",
    "steppers/test_rattle": "Constraints",
    "steppers/test_discrete_lagrangian": "Constraints",
    "steppers/test_nonholonomic": "Constraints",
    "": "Others",
}
#: Fields of one run, whose orders stand in one row.
FIELDS = {"q", "v", "v̇", "strain", "momentum", "position", "orientation", "pose"}


def write(source: Path) -> None:
    """Put the page and its pictures among the sources."""
    stored = json.loads(RECORD.read_text())
    rows = [stored[name] for name in sorted(stored, key=natural)]
    values = grouped([row for row in rows if row["kind"] == "values"], SUBJECTS)
    orders = grouped([row for row in rows if row["kind"] == "order"], FAMILIES)
    folder = source / "verified"
    folder.mkdir()
    parts = [(HERE / "verification_head.rst").read_text(), *agreement(values)]
    parts += figures({k: meshes(v) for k, v in values.items()}, folder, "meshes", "cells or steps",
                     "distance to the reference")  # fmt: skip
    parts += ["", "Orders of convergence in time", "-----------------------------", "", ORDERS, ""]
    parts += convergence(orders)
    parts += figures({k: steps(v) for k, v in orders.items()}, folder, "steps", "steps", "error")
    parts += structure([row for row in rows if row["kind"] == "defect"])
    parts.append((HERE / "verification_audit.rst").read_text())
    (source / "verification.rst").write_text("\n".join(parts))


ORDERS = (
    "The errors are those at a fixed time against an exact or a much finer solution. A row with a range has "
    "one order for each field, for example for strain, momentum, position and orientation."
)
STRUCTURE = (
    "The tests measure each claim of a stepper: how far a step is from symmetric or symplectic, and how far "
    "a conserved quantity drifts. The measured value of a claim lies below its bound. If a stepper claims "
    "not to have a property, the measured value lies above the bound."
)


def grouped(rows: list[dict], titles: dict[str, str]) -> dict[str, list[dict]]:
    """Rows by title, in the order of the titles."""
    found: dict[str, list[dict]] = {title: [] for title in titles.values()}
    for row in rows:
        prefix = next(start for start in titles if row["test"].startswith(start))
        found[titles[prefix]].append(row)
    return {title: some for title, some in found.items() if some}


def natural(text: str) -> list[str | int]:
    """A key that sorts the numbers in texts by their size."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def breakable(name: str) -> str:
    """The name of a test as HTML, with line breaks allowed between its words."""
    return re.sub("(::|/|_)", r"\1<wbr>", escape(name))


def number(x: float) -> str:
    """Seven digits."""
    return f"{x:.7g}".replace("-", "−")


def limit(row: dict) -> tuple[str, float | None]:
    """Observed order on the last three meshes and limit of the values, without the reference."""
    sizes, values, reference = row["meshes"], row["values"], row["reference"]
    if len(values) < 3:
        return "–", None
    changes = [b - a for a, b in pairwise(values)]
    if min(map(abs, changes)) < 1e-9 * abs(reference or 1.0):
        return "exact", values[-1]
    ratio = sizes[-1] / sizes[-2]
    order = math.log(abs(changes[-2] / changes[-1])) / math.log(ratio)
    return f"{order:.2f}", values[-1] + changes[-1] / (ratio**order - 1)


def agreement(subjects: dict[str, list[dict]]) -> list[str]:
    """One table of values beside references."""
    heads = ["problem", "quantity", "value", "reference", "difference", "order", "limit"]
    groups = {}
    for subject, rows in subjects.items():
        groups[subject] = []
        for row in rows:
            order, end = limit(row)
            apart = abs(row["values"][-1] - row["reference"]) / abs(row["reference"])
            groups[subject].append([
                f"{escape(row['problem'])}<br><small>{breakable(row['test'].partition('[')[0])}</small>",
                escape(row["quantity"]),
                f"{number(row['values'][-1])}<br><small>{row['meshes'][-1]} {escape(row['by'])}</small>",
                f"{number(row['reference'])}<br><small>{escape(row['source'])}</small>",
                f"{apart:.1e}".replace("-", "−"),
                order,
                "–" if end is None else number(end),
            ])  # fmt: skip
    return html_table(heads, groups, "stacked")


def meshes(rows: list[dict]) -> list[dict]:
    """Curves of distances to the references; to the limit where the reference has the larger error."""
    found = []
    for row in rows:
        end = limit(row)[1]
        if end is None or limit(row)[0] == "exact":
            continue
        far = abs(end - row["reference"]) > abs(row["values"][-1] - end)
        aim = end if far else row["reference"]
        label = row["problem"] if far is False else f"{row['problem']} (to its limit)"
        same = sum(other["problem"] == row["problem"] for other in rows) > 1
        label = f"{label}: {row['quantity']}" if same else label
        errors = [abs(v - aim) / abs(aim) for v in row["values"]]
        found.append(
            {
                "label": label,
                "n": row["meshes"],
                "errors": errors,
                "order": 2 * round(float(limit(row)[0]) / 2),
            }
        )
    return found


def steps(rows: list[dict]) -> list[dict]:
    """Curves of errors of steppers, one for each stepper and problem."""
    found = {}
    for row in rows:
        if "errors" in row:
            label = f"{row['stepper']}, {plain(row['system'])}"
            curve = {
                "label": label,
                "n": row["steps"],
                "errors": row["errors"],
                "order": row["claimed"],
            }
            found.setdefault(label, curve)
    return sorted(found.values(), key=lambda curve: curve["order"])


def plain(system: str) -> str:
    """The name of a problem without that of a field."""
    return ", ".join(part for part in system.split(", ") if part not in FIELDS)


def convergence(families: dict[str, list[dict]]) -> list[str]:
    """One table of claimed and observed orders."""
    groups = {}
    for family, rows in families.items():
        seen: dict[tuple, list[float]] = {}
        for row in rows:
            seen.setdefault((row["claimed"], row["stepper"], plain(row["system"])), []).append(
                row["measured"]
            )
        groups[family] = []
        for (claimed, stepper, system), orders in sorted(seen.items()):
            low, high = f"{min(orders):.2f}", f"{max(orders):.2f}"
            observed = low if low == high else f"{low} … {high}"
            groups[family].append([escape(stepper), escape(system), str(claimed), observed])
    return html_table(["stepper", "problem", "claimed order", "observed order"], groups, "stacked")


def structure(rows: list[dict]) -> list[str]:
    """One table of claims and denials, by property."""
    groups: dict[str, list[list[str]]] = {}
    first = {"symmetric": 0, "symplectic": 1}
    for row in sorted(rows, key=lambda r: (first.get(r["trait"], 2), r["trait"], r["stepper"])):
        sign = "&lt;" if row["claimed"] else "&gt;"
        groups.setdefault(row["trait"].capitalize(), []).append([
            escape(row["stepper"]), "yes" if row["claimed"] else "no", escape(row["system"]),
            f"{row['measured']:.1e}".replace("-", "−"), f"{sign} {row['bound']:.0e}".replace("-", "−"),
        ])  # fmt: skip
    heads = ["stepper", "claims it", "problem", "measured", "bound"]
    return ["", "Structure", "---------", "", STRUCTURE, "", *html_table(heads, groups, "stacked")]


def figures(
    curves: dict[str, list[dict]], folder: Path, name: str, across: str, up: str
) -> list[str]:
    """A picture of convergence for each group, in a grid."""
    lines = [".. grid:: 1 1 2 2", "   :gutter: 2", ""]
    for title, some in curves.items():
        if not some:
            continue
        file = f"{name}-{re.sub('[^a-z]+', '-', title.lower())}.svg"
        draw(title, some, folder / file, across, up)
        lines += ["   .. grid-item::", "", f"      .. image:: verified/{file}"]
        lines += [f"         :alt: {title}: {up} over the number of {across}", ""]
    return lines


def draw(title: str, curves: list[dict], file: Path, across: str, up: str) -> None:
    """Errors over numbers of cells or steps, on logarithmic axes, with lines of the claimed slopes."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    plt.rcParams["svg.hashsalt"] = "fdgeom"
    orders = sorted({curve["order"] for curve in curves})
    # Many curves of several orders are told apart by their orders, others by their names.
    many = len(curves) > 8 and len(orders) > 1
    marked = orders if many else list(range(len(curves)))
    hues = dict(
        zip(marked, plt.colormaps["viridis"](np.linspace(0, 0.85, len(marked))), strict=True)
    )
    figure, ax = plt.subplots(
        figsize=(5.6, 4.6 if many else 3.8 + 0.2 * len(curves)), layout="constrained"
    )
    for k, curve in enumerate(curves):
        n, errors = np.array(curve["n"]), np.array(curve["errors"])
        look = {"color": hues[curve["order"] if many else k], "marker": "osv^Dx*"[k % 7]}
        label = None if many else curve["label"]
        ax.loglog(n, errors, markersize=4, linewidth=1.2, label=label, **look)
        slope = errors[-1] * (n / n[-1]) ** -float(curve["order"])
        ax.loglog(n, 0.8 * slope, color="0.6", linewidth=0.7, linestyle="--", zorder=0)
    for order in orders if many else []:
        ax.plot([], [], color=hues[order], marker="o", markersize=4, label=f"order {order}")
    slopes = "the claimed order" if many else f"order {' and '.join(map(str, orders))}"
    ax.plot([], [], color="0.6", linewidth=0.7, linestyle="--", label=f"slope of {slopes}")
    ticks = sorted({n for curve in curves for n in curve["n"]})
    if len(ticks) < 8:
        ax.set_xticks(ticks)
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set(xlabel=f"number of {across}", ylabel=up, title=title)
    ax.grid(alpha=0.3)
    figure.legend(loc="outside lower center", fontsize=8, ncols=4 if many else 1, frameon=False)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
