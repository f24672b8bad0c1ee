"""The coefficients of composition and splitting schemes, with the digits published."""

import numpy as np

from fdgeom.messages import format_value
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
