"""Identities between forms that a method relies on, tested for any state and coefficients."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan

import numpy as np
from firedrake import Constant, Form, Function
from pyadjoint.tape import no_annotations
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.algorithms import extract_coefficients, replace
from ufl.algorithms.map_integrands import map_integrand_dags

from fdgeom.execution import FunctionalAssembly
from fdgeom.forms import EachCase, is_real, simplify
from fdgeom.operations.dependent import Sources, refresh

# Agreement to round-off of sums over cells; what is wrong is off by orders of magnitude.
TOLERANCE = 1e-11
# How far from the present state (of its own size where it is not zero), and how far from zero.
_NEAR, _FAR = (0.1, 1e-3, 0.0), (1.0, 30.0)
# Where values of any sign are outside the domain, as of a logarithm, those of one sign may be inside.
_ANY, _POSITIVE, _NEGATIVE = _SIGNS = (-1, 1), (0.1, 1), (-1, -0.1)


class Identity:
    """An equation between forms that a method relies on, tested with random values of all symbols."""

    # Near the present state and far from it, each symbol gets random values, coefficients too: an
    # equation that holds there holds always, with probability one. One that holds with the present
    # coefficients alone is tested again when one of them has changed. `equation(put)` gives a
    # function that returns the relative defect for the present values of the symbols (NaN where
    # something is not defined); `put(form)` writes one of `forms`, or a form derived from them,
    # with the symbols. `values` says for which values of the coefficients it must hold: "all" (then
    # both sides of each conditional count), the present ones ("present", and again when they have
    # changed), or "either". Where all tested states are outside its domain the defect is NaN: it
    # neither holds nor fails, and is tested again from the state of that time.
    @no_annotations
    def __init__(
        self,
        state: Sequence[Function],
        forms: Sequence[Form],
        equation: Callable[[Callable[[Form], Form]], Callable[[], float]],
        *,
        values: str = "either",
    ) -> None:
        places = [V.mesh().coordinates for f in state for V in f.function_space()]
        read = dict.fromkeys(f for form in forms for f in extract_coefficients(form))
        read |= dict.fromkeys(c for form in forms for c in extract_firedrake_constants(form))
        others = [f for f in read if not any(f is p for p in (*state, *places))]
        self._forms, self._state = forms, [(f, _symbol(f)) for f in state if f in read]
        self._others = [(f, _symbol(f)) for f in others]
        self._watched: Sources | None = None
        # Where conditions occur, it has to hold for a mixture of their cases and with the conditions in
        # place. The mixture may be defined nowhere, since two sides never are at once.
        defects = []
        for self._cases in (EachCase(), None) if values == "all" else (None,):
            self._equation = equation(self._put)
            defects.append(self._largest(noise=0.0 if values == "present" else 0.1))
            if self._cases is not None and not self._cases.found:
                break
        self.defect = max((d for d in defects if not np.isnan(d)), default=np.nan)
        if others and (values == "present" or (values == "either" and not self.holds)):
            self._watched = Sources(*others)
            self._ask()

    @property
    def holds(self) -> bool:
        """Whether the defect is round-off."""
        return self.defect <= TOLERANCE

    @property
    def fails(self) -> bool:
        """Whether the defect is more than round-off."""
        return self.defect > TOLERANCE

    def fails_now(self) -> bool:
        """Whether it fails with the coefficients as they are now; on all ranks."""
        if isnan(self.defect) or (self._watched is not None and self._watched.changed()):
            self._ask()
        return self.fails

    @no_annotations
    def _ask(self) -> None:
        refresh(*self._forms)
        if self._watched is not None:
            self._watched.take()
        self.defect = self._largest(noise=0.0)

    def _put(self, form: Form) -> Form:
        form = simplify(form)
        if self._cases is not None:
            form = map_integrand_dags(self._cases, form)
        return replace(form, dict((*self._state, *self._others)))

    def _largest(self, noise: float) -> float:
        """The largest defect, with coefficients that differ from the present ones by ``noise``."""
        found = []
        for seed in (1, 2):
            draw = _Draw(seed)
            for coefficient, symbol in self._others:
                draw.fill(symbol, coefficient, noise)
            found.append(
                self._first_defined([(amplitude, _ANY, True) for amplitude in _NEAR], draw)
            )
            if self._state:
                found += [
                    self._first_defined([(size, sign, False) for sign in _SIGNS], draw)
                    for size in _FAR
                ]
        return float(max((d for d in found if not np.isnan(d)), default=np.nan))

    def _first_defined(self, states, draw: "_Draw") -> float:
        """The defect at the first of some states at which it is defined; NaN if there is none."""
        for amplitude, sign, near in states:
            for f, symbol in self._state:
                draw.fill(symbol, f if near else None, amplitude, sign)
            defect = self._equation()
            if not np.isnan(defect):
                return defect
        return np.nan


def of_numbers(forms: Sequence[Form], defect: Callable[..., float]) -> Callable:
    """The equation of an :class:`Identity` whose defect is a function of the values of functionals."""

    def equation(put):
        numbers = [FunctionalAssembly(put(form)) for form in forms]
        return lambda: defect(*(number.assemble() for number in numbers))

    return equation


def check_now(demands: Mapping[str, Identity]) -> None:
    """Raise ``ValueError`` with the message of an identity that fails now, and its defect."""
    for message, identity in demands.items():
        if identity.fails_now():
            raise ValueError(message.format(identity.defect))


def _symbol(value: Function | Constant) -> Function | Constant:
    if isinstance(value, Function):
        return Function(value.function_space())
    return Constant(np.zeros(value.ufl_shape) if value.ufl_shape else 0.0)


class _Draw:
    """Draws values at random."""

    def __init__(self, seed: int) -> None:
        self._rng, self._same_on_all_ranks = (np.random.default_rng(seed) for _ in range(2))

    def fill(self, symbol, source, amplitude: float, sign: tuple[float, float] = _ANY) -> None:
        """Give a symbol values near those of a source (of the same sign), or near zero."""
        parts = getattr(symbol, "subfunctions", (symbol,))
        sources = getattr(source, "subfunctions", (source,) * len(parts))
        for part, origin in zip(parts, sources, strict=True):
            values = part.dat.data
            number = not isinstance(part, Function) or is_real(part)
            rng = self._same_on_all_ranks if number else self._rng
            noise = amplitude * rng.uniform(*sign, values.shape)
            if origin is not None:
                own = np.asarray(origin.dat.data_ro)
                noise = own * (1 + noise) + np.where(own == 0, noise, 0)
            values[...] = noise


def difference(a, b) -> float:
    """The norm of a - b relative to that of b; NaN where one is not finite."""
    with a.dat.vec_ro as x, b.dat.vec_ro as y:
        difference, scale = (x - y).norm(), y.norm()
    if not np.isfinite(difference) or not np.isfinite(scale):
        return np.nan
    if not difference:
        return 0.0
    return difference / scale if scale else np.inf
