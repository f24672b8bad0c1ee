"""Restriction of forms on a mesh of rods and links to the rods."""

import ufl
from firedrake import Form, Function
from ufl.algorithms.map_integrands import map_integrand_dags
from ufl.corealg.multifunction import MultiFunction

from fdgeom.forms import simplify


class _Inside(MultiFunction):
    """Replaces the function that is 1 in rods by 1, and resolves conditionals that depend on it."""

    def __init__(self, inside) -> None:
        super().__init__()
        self._inside = inside

    expr = MultiFunction.reuse_if_untouched

    def coefficient(self, o):
        return ufl.as_ufl(1.0) if o is self._inside or o == self._inside else o

    def conditional(self, o, condition, true, false):
        if isinstance(condition, ufl.classes.GT):
            left, right = condition.ufl_operands
            if all(isinstance(x, ufl.classes.ScalarValue) for x in (left, right)):
                return true if float(left) > float(right) else false
        return self.reuse_if_untouched(o, condition, true, false)


def without_links(form: Form, inside: Function) -> Form:
    """The form in the cells where the function ``inside`` is 1."""
    return simplify(map_integrand_dags(_Inside(inside), simplify(form)))
