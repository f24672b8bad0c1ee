"""Energies of all systems under the same names: the total and its parts."""

from ufl.classes import Form

from fdgeom.forms import is_zero, simplify
from fdgeom.solvers import FunctionalAssembly

#: The parts of an energy, in the order in which they are recorded.
PARTS = ("kinetic_energy", "potential_energy", "load_potential")


def named_energies(
    kinetic: Form | None = None, potential: Form | None = None, load: Form | None = None
) -> dict[str, Form]:
    """Energy functionals by name: the given parts, and ``"energy"``, their sum."""
    parts = {
        name: form
        for name, form in zip(PARTS, (kinetic, potential, load), strict=True)
        if form is not None and not is_zero(simplify(form))
    }
    return {**parts, "energy": sum(parts.values(), Form([]))}


class Energies:
    """The values of the functionals of ``energies()``, under the same names for every system."""

    # `energy` is the total that a motion without external work conserves, kinetic_energy +
    # potential_energy + load_potential. The potential energy is that of the system itself (of a
    # beam the elastic one), the load potential that of gravity, dead forces and each `BodyLoad`
    # with a potential.
    _held: dict

    def energies(self) -> dict[str, Form]:
        """Energy functionals by name, with the total as ``"energy"``; none in general."""
        return {}

    def energy(self) -> float:
        """The total energy."""
        return self._energy_named("energy")

    def kinetic_energy(self) -> float:
        """The kinetic energy."""
        return self._energy_named("kinetic_energy")

    def potential_energy(self) -> float:
        """The potential energy, without that of loads."""
        return self._energy_named("potential_energy")

    def load_potential(self) -> float:
        """The potential of the loads that have one, such as gravity and dead forces."""
        return self._energy_named("load_potential")

    def _energy_named(self, name: str) -> float:
        key = f"number of {name}"
        if key not in self._held:
            forms = self.energies()
            if name not in forms and not any(part in forms for part in PARTS):
                known = "its energy as a whole" if forms else "no energy"
                raise ValueError(
                    f"{name}: this {type(self).__name__} states {known}; measure a functional of "
                    "your own, fdgeom.Functional(name, form)"
                )
            self._held[key] = FunctionalAssembly(forms[name]) if name in forms else None
        held = self._held[key]
        return 0.0 if held is None else held.assemble()
