"""Symmetric compositions: high order from a symmetric method of order two."""

from typing import ClassVar

import numpy as np

from fdgeom.messages import format_value
from fdgeom.operations import Flow, completed
from fdgeom.steppers.stepper import Stepper
from fdgeom.validation import choice

_TRIPLE = 1 / (2 - 2 ** (1 / 3))
# Half of each palindromic scheme, the middle weight last.
_HALVES = {
    # Yoshida, Phys. Lett. A 150, 262 (1990): the triple jump, solutions A and D.
    (4, "yoshida"): (_TRIPLE, 1 - 2 * _TRIPLE),
    (6, "yoshida"): (
        0.78451361047755726382,
        0.23557321335935813368,
        -1.17767998417887100695,
        1.31518632068391121889,
    ),
    (8, "yoshida"): (
        0.914844246229740,
        0.253693336566229,
        -1.44485223686048,
        -0.158240635368243,
        1.93813913762276,
        -1.96061023297549,
        0.102799849391985,
        1.708453070786998,
    ),
    # Kahan & Li, Math. Comp. 66, 1089 (1997): nine and seventeen stages.
    (6, "kahan-li"): (
        0.39216144400731413928,
        0.33259913678935943860,
        -0.70624617255763935981,
        0.082213596293550800230,
        0.79854399093482996340,
    ),
    (8, "kahan-li"): (
        0.13020248308889008088,
        0.56116298177510838456,
        -0.38947496264484728641,
        0.15884190655515560090,
        -0.39590389413323757734,
        0.18453964097831570709,
        0.25837438768632204729,
        0.29501172360931029887,
        -0.60550853383003451170,
    ),
    # Suzuki & Umeno (1993), McLachlan, SIAM J. Sci. Comput. 16, 151 (1995): fifteen stages.
    (8, "suzuki-umeno"): (
        0.74167036435061295345,
        -0.40910082580003159400,
        0.19075471029623837995,
        -0.57386247111608226666,
        0.29906418130365592384,
        0.33462491824529818378,
        0.31529309239676659663,
        -0.79688793935291635402,
    ),
}
# Blanes & Moan, J. Comput. Appl. Math. 142, 313 (2002), S6: the flows of A (7) and B (6) in turn.
BLANES_MOAN = "blanes-moan"
#: The names of the schemes of each order, the default first.
SCHEMES = {
    4: ("suzuki", "yoshida", BLANES_MOAN),
    6: ("kahan-li", "suzuki", "yoshida"),
    8: ("kahan-li", "suzuki", "suzuki-umeno", "yoshida"),
}
#: Papers to cite, by scheme.
PAPERS = {
    "suzuki": ("Suzuki1990",),
    "yoshida": ("Yoshida1990",),
    "kahan-li": ("KahanLi1997",),
    BLANES_MOAN: ("BlanesMoan2002",),
}
_FLOW_A = (0.0792036964311957, 0.353172906049774, -0.0420650803577195)
_FLOW_B = (0.209515106613362, -0.143851773179818)


def scheme_of(order: int, scheme: str | None) -> str:
    """The name of the scheme of that order, the default one if none is given."""
    choice("order", order, SCHEMES)
    names = SCHEMES[order]
    chosen = names[0] if scheme is None else scheme
    if not isinstance(chosen, str) or chosen not in names:
        raise ValueError(
            f"scheme must be one of {names} for order {order}, not {format_value(scheme)}"
        )
    return chosen


def weights(order: int, scheme: str) -> np.ndarray:
    """The fractions of the step that a composition of steps takes, one after another."""
    if scheme == "suzuki":
        return _suzuki(order)
    half = _HALVES[order, scheme]
    return np.array([*half, *half[-2::-1]])


def _suzuki(order: int) -> np.ndarray:
    """Five steps of the method of order two less (Suzuki, Phys. Lett. A 146, 319, 1990)."""
    if order == 2:
        return np.ones(1)
    inner = _suzuki(order - 2)
    outer = 1 / (4 - 4 ** (1 / (order - 1)))
    return np.concatenate([w * inner for w in (outer, outer, 1 - 4 * outer, outer, outer)])


def flow_fractions() -> tuple[np.ndarray, np.ndarray]:
    """The fractions of the step that Blanes & Moan's splitting takes with the flows A and B."""
    a = np.array([*_FLOW_A, 1 - 2 * sum(_FLOW_A), *_FLOW_A[::-1]])
    b = np.array([*_FLOW_B, 0.5 - sum(_FLOW_B)])
    return a, np.concatenate([b, b[::-1]])


def pair_fractions() -> np.ndarray:
    """Blanes & Moan's splitting for B∘A and its adjoint A∘B, where A and B approximate flows."""
    # With α₁ = a₁ and α_{i+1} + α_i = b₁, a₂, b₂, ...: the composition of any first-order method
    # and its adjoint has the order of the splitting (McLachlan 1995).
    a, b = flow_fractions()
    sums = [x for pair in zip(b, a[1:], strict=True) for x in pair]
    alpha = [a[0]]
    for total in sums[:-1]:
        alpha.append(total - alpha[-1])
    return np.array(alpha)


def Composition(
    stepper_class: type[Stepper], order: int = 4, scheme: str | None = None
) -> type[Stepper]:
    """The stepper class that composes a symmetric method of order two to a higher order.

    Parameters
    ----------
    stepper_class : type
        A symmetric stepper of order 2, such as :class:`StormerVerlet`.
    order : {4, 6, 8}
        Order of the result.
    scheme : str, optional
        The scheme:

        - order 4: "suzuki" (default, 5 stages), "yoshida" (3), "blanes-moan" (see below);
        - order 6: "kahan-li" (default, 9 stages), "yoshida" (7), "suzuki" (25);
        - order 8: "kahan-li" (default, 17 stages), "suzuki-umeno" (15), "yoshida" (15), "suzuki"
          (125).

        Fewer stages are cheaper, but have larger errors and longer negative substeps.

    Returns
    -------
    type
        A stepper class, to be called with ``(system, dt, ...)`` like any other.

    Raises
    ------
    TypeError
        If ``stepper_class`` is no stepper class.
    ValueError
        If it is not symmetric and of order two, or there is no composition of that order; in the
        call of the class, if the scheme is "blanes-moan" and the method does not consist of two
        flows, or the method is not symmetric for that system and these options.

    Notes
    -----
    One step is Ψ(w_s Δt) ∘ ... ∘ Ψ(w_1 Δt) with Σ w_i = 1 and w_i = w_{s+1-i}; some w_i are
    negative. If the method has a limit of the step, the largest |w_i| reduces it: 0.66, 1.70 for
    order 4, 0.80, 1.32, 0.32 for order 6, 0.61, 0.80, 1.96, 0.14 for order 8, in the order above.
    Hairer, Lubich & Wanner, Geometric Numerical Integration, section V.3.

    The order also holds with supported and prescribed ends, with loads that depend on time and with
    follower loads: the time advances by the fractions of the step, forwards and backwards. If flows
    are composed, it advances with the flow of the configuration. Combinations that would lose the
    order are refused.

    Blanes & Moan's splitting S6 composes the two flows inside a splitting method (the two halves of
    the energy in :class:`StormerVerlet`, in :class:`Splitting` with two energies, the two parts of a
    state in :class:`SymmetricPoissonIntegrator`, forces and free motion in
    :class:`VariationalIntegrator`), six times each. At the same cost its errors
    are far smaller than those of the compositions of order 4.

    Examples
    --------
    >>> Fourth = Composition(SymmetricPoissonIntegrator, order=4)  # doctest: +SKIP
    >>> stepper = Fourth(beam, dt=1e-4)  # doctest: +SKIP
    """
    if not (isinstance(stepper_class, type) and issubclass(stepper_class, Stepper)):
        raise TypeError("stepper_class must be a stepper class, such as SymmetricPoissonIntegrator")
    if not stepper_class.symmetric or stepper_class.order != 2:
        raise ValueError(
            f"stepper_class must be symmetric and of order 2; {stepper_class.__name__} is "
            f"{'' if stepper_class.symmetric else 'not '}symmetric and of order {stepper_class.order}"
        )
    chosen = scheme_of(order, scheme)
    name = f"{stepper_class.__name__}Order{order}"
    if scheme is not None:
        name += "".join(word.capitalize() for word in scheme.split("-"))
    traits = {
        "__doc__": f"{stepper_class.__name__} composed to order {order} by the scheme {chosen!r}.",
        "__module__": __name__,
        "order": order,
        "cites": PAPERS.get(chosen, ()),
        "_method": stepper_class.__name__,
        "_scheme": chosen,
    }
    return type(name, (_Composed, stepper_class), traits)


class _Composed(Stepper):
    """The part of a composition before its method in the order of base classes."""

    _method: ClassVar[str]
    _scheme: ClassVar[str]
    _is_composed = True

    def _setup(self) -> None:
        super()._setup()
        if why := self.uncomposable():
            raise ValueError(why)

    def flows(self):
        flows = completed(super().flows(), self.system)  # type: ignore[safe-super]
        if self._scheme == BLANES_MOAN:
            return self._flows_of_pair(flows)
        found, begin = [], 0.0
        for weight in weights(self.order, self._scheme).tolist():
            found += [flow.scaled(weight, begin) for flow in flows]
            begin += weight
        return found

    def _flows_of_pair(self, flows: list[Flow]) -> list[Flow]:
        """The composition of the two flows inside a splitting method."""
        fractions = [flow.fraction for flow in flows]
        first, last = ([op.original for op in flows[k].operations] for k in (0, -1))
        if fractions != [0.5, 1.0, 0.5] or first != last:
            raise ValueError(
                f"scheme: {self._scheme!r} needs a method of two flows, half of the first, the second "
                f"and again half of the first, and {self._method} of this "
                f"{type(self.system).__name__} is not; use scheme='suzuki'"
            )
        # The time passes with the second one.
        half, timed, _ = flows
        waiting = tuple(op.placed(at=0.0) for op in half.operations)
        exact = half.exact, timed.exact
        found, begin, order = [], 0.0, (0, 1)
        for fraction in pair_fractions().tolist():
            for which in order:
                operations = timed.operations if which else waiting
                found.append(Flow(operations, fraction, begin, exact[which]))
                begin += fraction if which else 0.0
            order = order[::-1]
        return found
