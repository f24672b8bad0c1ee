"""The discrete-gradient method, which conserves any energy to round-off."""

from typing import Unpack

from firedrake import Form

from fdgeom.steppers.mean_derivative import MeanDerivative
from fdgeom.steppers.sweep import MIDPOINT, Rule, Sweep, SweepOptions, Turn, everything
from fdgeom.validation import whole

_POINTS_OF_A_GENERAL_ENERGY = 8
# The energy stands so many times in the form of a step; polynomials of twice the degree are exact.
_MOST_POINTS = 64


class DiscreteGradient(Sweep):
    """Discrete gradient by the averaged vector field: conserves the energy, whatever the step.

    ⟨w, z¹ - z⁰⟩ = Δt {w, h}  with the bracket at (z⁰+z¹)/2 and δh/δz replaced by its mean b̄ = ∫₀¹
    δh/δz(z⁰ + τ(z¹-z⁰)) dτ, so that h(z¹) - h(z⁰) = ⟨b̄, z¹-z⁰⟩ = Δt {h, h} = 0 (McLachlan, Quispel
    & Robidoux 1999; Quispel & McLaren 2008). The integral is computed at Gauss points, exactly for
    polynomials. For other energies Gonzalez's correction removes the quadrature error in large
    steps (`MeanDerivative`), so that ⟨b̄, z¹-z⁰⟩ is the difference of the energies to round-off for
    every step that converges.

    Parameters
    ----------
    system : PoissonSystem
        The system to integrate.
    dt : float
        Time step.
    points : int, optional
        Gauss points for an energy that is not a polynomial (default 8, at least 5).
    configuration, solver_parameters, options_prefix
        As for the other methods.

    Raises
    ------
    TypeError, ValueError
        If the system is not a PoissonSystem, or ``points`` is not a whole number up to 64;
        for a beam with gravity or dead forces, if ``configuration`` is not "mean", since only then
        their potential belongs to the energy.

    Notes
    -----
    For a quadratic energy this is the implicit midpoint rule. It conserves the energy that
    ``system.energy()`` reports, with one quadrature for it and for all its derivatives. The energy
    of a beam includes the potential of gravity (on an inertia of masses, see `Gravity`), of dead
    forces, and of every other load that has one; loads without a potential change it by their work.
    """

    order = 2
    symmetric = True
    conserves = ("energy", "quadratic Casimirs")
    cites = ("McLachlanQuispelRobidoux1999", "QuispelMcLaren2008")

    def __init__(
        self, system, dt: float, *, points: int | None = None, **options: Unpack[SweepOptions]
    ) -> None:
        points = _POINTS_OF_A_GENERAL_ENERGY if points is None else points
        self.points = whole("points", points, least=1, most=_MOST_POINTS)
        super().__init__(system, dt, **options)

    def parameters(self):
        return super().parameters() | {"points": self.points}

    def _setup(self) -> None:
        super()._setup()
        if self.configuration != "mean" and "load_potential" in self.system.energies():
            raise ValueError(
                "configuration: with gravity or dead forces the energy is kept with the mean "
                f"momentum only; take configuration='mean', not {self.configuration!r}"
            )

    def turns(self):
        degree = self.system.forms.energy_degree
        if degree is not None and degree <= 2:
            return [Turn(everything(self.system), MIDPOINT)]
        return [Turn(everything(self.system), averaged_vector_field(self.system, self.points))]


def averaged_vector_field(system, points: int) -> Rule:
    """The rule with the gradient averaged between old and new, at ``points`` if no polynomial."""
    if system.auxiliary is not None:
        raise ValueError(
            "system: with auxiliary functions DiscreteGradient needs an energy of second degree in "
            "the state; take ImplicitMidpoint"
        )
    mean = MeanDerivative(system, points)

    def residual(system, stage, dt):
        old, new = system.parts, stage.state
        middle = tuple(a + 0.5 * (b - a) for a, b in zip(old, new, strict=True))
        if stage.gradient_test is None:
            slope, defining = mean.gradient(old, new), Form([])
        else:
            slope, test = stage.gradient, stage.gradient_test
            defining = system.pairing(test, slope, at=middle) - mean.form(test, old, new)
        change = tuple(b - a for a, b in zip(old, new, strict=True))
        flow = system.bracket(stage.test, slope, at=middle)
        flow += system.substeps.forcing(stage.test, slope, dt)
        return system.pairing(stage.test, change, at=middle) - dt * flow + defining

    # The mean of pointwise gradients is that of one metric only.
    pointwise = mean.is_pointwise and not system.forms.pairing_varies
    return Rule(residual, 1.0, pointwise)
