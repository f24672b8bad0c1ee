"""The benchmark's table, targets and picture."""

from __future__ import annotations

from pathlib import Path

REFERENCE = "C"
#: Programs in the order of the table, with what they are.
PROGRAMS = {
    "C": "hand-written scalar C, gcc -O3 -march=native -ffast-math: the reference of the ratios",
    "C, unrolled": "the same with its 6×6 eliminations unrolled by pragma",
    "NumPy": "the same scheme, all nodes at once",
    "advance(n)": "fdgeom, many steps in one call",
    "advance(1)": "fdgeom's default, one step a call",
    "SNES LocalNewton": "fdgeom through PETSc SNES with the type fdgeom.LocalNewton, one step a call",
    "SNES": "fdgeom through PETSc SNES as it is (newtonls, pbjacobi), one step a call",
}
FREE_FLIGHT = {
    "PyElastica": "position Verlet",
    "fdgeom, advance(n)": "Poisson integrator, many steps in one call",
    "fdgeom, advance(1)": "the same, one step a call",
    "fdgeom, SNES LocalNewton": "the same through PETSc SNES, one step a call",
}
# Largest ratios to C, by cells.
_RATIOS = {
    "SNES LocalNewton": {100: 2.0, 10**4: 1.3, 10**5: 1.2, 10**6: 1.2},
    "advance(n)": dict.fromkeys((100, 10**4, 10**5, 10**6), 0.15),
}
_FLAT, _SPEED_UP = 1.5, 1.7


def targets(results: dict) -> list[tuple[str, str, bool | None]]:
    """What is wanted, what was seen, and whether that is enough (None: not measured)."""
    steps, found = results["steps"], []

    def compare(text: str, seen: float | None, limit: float, *, above: bool = False) -> None:
        sign = "≥" if above else "≤"
        reached = None if seen is None else (seen >= limit if above else seen <= limit)
        number = "not measured" if seen is None else f"{seen:.3g}"
        found.append((f"{text} {sign} {limit:g}", number, reached))

    for name, limits in _RATIOS.items():
        for cells, limit in limits.items():
            times = steps.get(str(cells))
            ratio = times[name] / times[REFERENCE] if times else None
            compare(f"{name} / C at {cells:g} cells", ratio, limit)
    costs = [t["advance(n)"] / int(n) for n, t in steps.items() if int(n) >= 10**4]
    seen = max(costs) / min(costs) if str(10**6) in steps else None
    compare("advance(n): cost per node, largest / least from 1e4 to 1e6", seen, _FLAT)
    two = {r["cells"]: r["one"] / r["two"] for r in results.get("ranks", [])}
    compare("two ranks: speed-up at 1e6 cells", two.get(10**6), _SPEED_UP, above=True)
    flight = results["flight"].get("100")
    seen = flight["fdgeom, advance(n)"] / flight["PyElastica"] if flight else None
    compare("fdgeom, advance(n) / PyElastica at 100 cells", seen, 1.0)
    differences = results["differences"].get("100")
    worst = 2 * max(differences.values()) if differences else None
    compare("difference of any two programs after 1000 steps, 100 cells", worst, 1e-11)
    return found


def markdown(results: dict) -> str:
    """The report as Markdown."""
    lines = ["# Seconds per step of the paper's beam", "", results["machine"], ""]
    lines += [f"- {name}: {text}" for name, text in PROGRAMS.items()]
    lines += [
        "",
        "Step scaled with the cell: dt = 1e-4 · 100 / cells. Processor time of one thread, the least "
        f"of {results['rounds']} rounds in turns.",
        "",
    ]
    lines += _table(
        ("cells", "program", "µs a step", "ns a node", "ratio to C", "difference from C"),
        [
            (f"{int(cells):g}", name, f"{1e6 * t:.4g}", f"{1e9 * t / (int(cells) + 1):.4g}",
             f"{t / times[REFERENCE]:.3g}", _number(results["differences"][cells].get(name)))
            for cells, times in results["steps"].items()
            for name, t in times.items()
        ],
    )  # fmt: skip
    copying = [f"{x:.2g} steps at {int(n):g} cells" for n, x in results["copying"].items()]
    iterations = [f"{x:.3g} at {int(n):g}" for n, x in results["iterations"].items()]
    lines += [
        "",
        f"Copying into the order of a chain and back, once a call, costs {', '.join(copying)}.",
        f"Newton iterations a node and step of the program in C: {', '.join(iterations)} cells.",
    ]
    if results.get("ranks"):
        lines += ["", "## Two ranks (advance(n))", ""]
        lines += _table(
            ("cells", "one rank, µs", "two ranks, µs", "speed-up", "difference"),
            [
                (f"{r['cells']:g}", f"{1e6 * r['one']:.4g}", f"{1e6 * r['two']:.4g}",
                 f"{r['one'] / r['two']:.3g}", f"{r['difference']:.1g}")
                for r in results["ranks"]
            ],
        )  # fmt: skip
    lines += ["", "## Free-flying beam, equal steps", ""]
    if results.get("flight"):
        lines += [f"- {name}: {text}" for name, text in FREE_FLIGHT.items()]
        if "flight_difference" in results:
            gap = f"{results['flight_difference']:.1g} lengths"
            lines += ["", f"Positions differ by at most {gap} after 1000 steps at 100 cells.", ""]
        lines += _table(
            ("cells", "program", "µs a step", "ratio to PyElastica"),
            [
                (f"{int(cells):g}", name, f"{1e6 * t:.4g}", f"{t / times['PyElastica']:.3g}")
                for cells, times in results["flight"].items()
                for name, t in times.items()
            ],
        )
    else:
        lines.append("PyElastica is not installed (pip install pyelastica).")
    if results.get("startup"):
        lines += ["", "## Start-up: from the stepper's construction to its first step done", ""]
        lines += _table(
            ("way", "nothing compiled yet, s", "all compiled, s"),
            [(n, f"{cold:.3g}", f"{warm:.3g}") for n, (cold, warm) in results["startup"].items()],
        )
    lines += ["", "## Targets", ""]
    words = {True: "reached", False: "NOT reached", None: "not measured"}
    lines += _table(
        ("target", "seen", ""), [(t, seen, words[reached]) for t, seen, reached in targets(results)]
    )
    return "\n".join(lines) + "\n"


def picture(results: dict, path: Path) -> None:
    """Cost per node and ratio to C against the number of cells."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cells = [int(n) for n in results["steps"]]
    styles = {
        "C": ("black", "-", "o"),
        "C, unrolled": ("black", "--", "o"),
        "NumPy": ("0.6", "-", "s"),
        "SNES": ("#b2182b", ":", "v"),
        "SNES LocalNewton": ("#d6604d", "-", "^"),
        "advance(1)": ("#4393c3", ":", "D"),
        "advance(n)": ("#053061", "-", "X"),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    for name, (color, line, marker) in styles.items():
        points = [(n, results["steps"][str(n)].get(name)) for n in cells]
        points = [(n, t) for n, t in points if t is not None]
        if not points:
            continue
        look = {"color": color, "linestyle": line, "marker": marker, "label": name}
        left.loglog([n for n, _ in points], [1e9 * t / (n + 1) for n, t in points], **look)
        ratios = [t / results["steps"][str(n)][REFERENCE] for n, t in points]
        right.loglog([n for n, _ in points], ratios, **look)
    left.set(xlabel="cells", ylabel="time per node and step [ns]", title="Cost of a node")
    right.set(xlabel="cells", ylabel="time / time of scalar C [1]", title="Ratio to hand-written C")
    for axes in (left, right):
        axes.grid(True, which="major", alpha=0.3)
    figure.legend(*right.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _table(head, rows) -> list[str]:
    columns = [max(len(str(x)) for x in column) for column in zip(head, *rows, strict=True)]
    line = lambda row: (  # noqa: E731
        "| " + " | ".join(f"{x!s:<{w}}" for x, w in zip(row, columns, strict=True)) + " |"
    )
    return [line(head), "|" + "|".join("-" * (w + 2) for w in columns) + "|", *map(line, rows)]


def _number(x: float | None) -> str:
    return "" if x is None else f"{x:.1e}"
