"""Splitting methods: compositions of midpoint rules for the parts of the energy."""

from collections.abc import Sequence
from typing import Unpack

from firedrake import Form

from fdgeom.identities import Identity, of_numbers
from fdgeom.steppers.sweep import MIDPOINT, Sweep, SweepOptions, Turn, everything
from fdgeom.validation import instance

# Energies that are all zero are no quotient of zeros.
_TINY = 1e-300
_NO_SUM = (
    "energies must sum to the energy of the system, at every state and for the values that coefficients "
    "have now: they are off by {:.2g} of their size"
)


class Splitting(Sweep):
    """Splits h = h₁ + ... + h_n and composes the flows of the h_i, each by the midpoint rule.

    Strang's symmetric order: half a step with h₁ ... h_{n-1}, a step with h_n, and back. If the
    midpoint rule is a Poisson map for each flow, so is the splitting: for the free rigid body with
    h_i = y_i²/(2I_i) each flow is a rotation about a fixed axis, and the method is a Poisson map on
    so(3)* that conserves the Casimir (McLachlan, Phys. Rev. Lett. 71, 1993; Reich 1994). For
    constant brackets it is symplectic.

    Parameters
    ----------
    system : PoissonSystem
        The system to integrate.
    dt : float
        Time step.
    energies : sequence of UFL functionals
        The parts h_i; their sum must be the system's energy.
    configuration, solver_parameters, options_prefix
        As for the other methods.
    """

    needs = "a PoissonSystem"
    order = 2
    symmetric = True
    symplectic = True
    conserves = ("quadratic Casimirs",)
    cites = ("McLachlan1993",)

    def __init__(
        self, system, dt: float, *, energies: Sequence[Form], **options: Unpack[SweepOptions]
    ) -> None:
        instance("energies", energies, tuple | list, "a list of functionals")
        self.energies = tuple(energies)
        super().__init__(system, dt, **options)

    def _setup(self) -> None:
        if len(self.energies) < 2:
            raise ValueError("energies must be two functionals or more, that sum to the energy")
        self._pieces = [self.system.substeps.with_energy(h) for h in self.energies]
        total, pieces = self.system.energy(), [s.energy() for s in self._pieces]
        scale = max(abs(total), *(abs(e) for e in pieces))
        # Sums of the same densities in another order: round-off only.
        if abs(sum(pieces) - total) > 1e-10 * scale:
            raise ValueError(
                f"energies must sum to the energy of the system: {sum(pieces):.12g} is not {total:.12g}"
            )
        self._demands[_NO_SUM] = self._identity_of_sums()
        super()._setup()

    def _identity_of_sums(self) -> Identity:
        """The identity of the energy and the sum of its parts."""
        forms = [system.energy_form() for system in (self.system, *self._pieces)]

        def defect(total: float, *pieces: float) -> float:
            return abs(sum(pieces) - total) / max(abs(total), *map(abs, pieces), _TINY)

        return Identity(self.system.parts, forms, of_numbers(forms, defect))

    def parameters(self):
        return super().parameters() | {"energies": self.energies}

    def turns(self):
        parts = everything(self.system)
        *others, last = self._pieces
        first = [Turn(parts, MIDPOINT, 0.5, piece) for piece in others]
        return [*first, Turn(parts, MIDPOINT, 1.0, last), *reversed(first)]
