"""What each method keeps of the paper's beam in its run of 1000 steps: a table of the site."""

from __future__ import annotations

from verification.beams import papers_beam

import fdgeom as fg

STEPS, DT = 1000, 1e-4
#: What is below is round-off of a thousand solves and sums, which differs from machine to machine.
ROUND_OFF = 1e-10
S = fg.SymmetricPoissonIntegrator
#: The rows: words, method, how it moves the poses.
METHODS = (
    ("`PoissonIntegrator`", fg.PoissonIntegrator, "old"),
    ('the same, `configuration="mean"`', fg.PoissonIntegrator, "mean"),
    ("`HamelFieldIntegrator`", fg.HamelFieldIntegrator, "old"),
    ('the same, `configuration="mean"`', fg.HamelFieldIntegrator, "mean"),
    ("`SymmetricPoissonIntegrator`", S, "mean"),
    ("composed to order 4", fg.Composition(S, order=4), "mean"),
    ("composed to order 6", fg.Composition(S, order=6), "mean"),
    ("`ImplicitMidpoint`", fg.ImplicitMidpoint, "mean"),
    ("`DiscreteGradient` (here the same method)", fg.DiscreteGradient, "mean"),
)


def row(words: str, method: type, configuration: str) -> str:
    """The largest deviations of a method from the start, sampled after every step."""
    stepper = method(papers_beam(), DT, configuration=configuration)
    history = stepper.run(steps=STEPS, monitors=[fg.Energy(), fg.Momentum()])
    change = history["energy"] - history["energy"][0]
    kept = [f"{history.deviation(name):.1e}" for name in ("linear_momentum", "angular_momentum")]
    band = f"{_number(change.min())} ... {_number(change.max())}"
    if abs(change).max() < ROUND_OFF:
        band = "round-off"
    return f"| {' | '.join([words, band, *map(_short, kept)])} |"


def start() -> str:
    """Energy and momenta at the start, in a sentence."""
    beam = papers_beam()
    linear, angular = (
        f"({', '.join(f'{x:.2f}' for x in vector)})"
        for vector in (beam.linear_momentum(), beam.angular_momentum())
    )
    return (
        f"The run of Chen & Shi: 100 cells, {STEPS} steps of 1e-4, sampled after every step. At the "
        f"start the energy is {beam.energy():.2f}, the linear momentum {linear}, the angular "
        f"momentum {angular}."
    )


def table() -> str:
    """The whole table in Markdown."""
    head = "| stepper | energy band | linear momentum | angular momentum |\n|---|---|---|---|"
    return "\n".join([head, *(row(*method) for method in METHODS)])


def _number(x: float) -> str:
    """Three decimals, or two digits of a small number."""
    if abs(x) < ROUND_OFF:
        return "0"
    return f"{x:+.3f}" if abs(x) >= 1e-2 else _short(f"{x:+.1e}")


def _short(text: str) -> str:
    """1.0e-02 as 1.0e-2."""
    mantissa, exponent = text.split("e")
    return f"{mantissa}e{int(exponent)}"
