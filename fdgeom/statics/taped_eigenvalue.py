"""Eigenvalues of vibration modes on pyadjoint's tape."""

import numpy as np
from firedrake import Cofunction, Function
from pyadjoint import AdjFloat
from pyadjoint.tape import stop_annotating
from ufl.classes import Form

from fdgeom.adjoint import Coefficients, Replay, Vectors, keys, parts
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.execution import LinearForm
from fdgeom.forms import simplify, slope_by
from fdgeom.taping import PreparedBlock

# Of the larger of two eigenvalues: nearer ones are one that is multiple.
_APART = 1e-6


class EigenvalueSlopes(Replay):
    """The derivatives of a simple eigenvalue, λ' = φ·(K' - λM')φ with φ·Mφ = 1."""

    def __init__(self, motion: RodMotion, load: float) -> None:
        self._shape = Function(motion.space, name="mode")
        work, other = self._works(motion, load)
        views, g, rod = list(motion.configuration), motion.configuration, motion.rod
        # All that makes the equilibrium, so that it is one when the eigenvalue is found again.
        forms = [other, rod.internal_work(g, self._shape), rod.external_work(g, self._shape)]
        coefficients = Coefficients([], keys(views), motion.clocks, forms)
        super().__init__(views, coefficients)
        own = [*self.inputs, *self.fields]
        self._slopes = [(f, self._slope(work, f), self._slope(other, f)) for f in own]

    def _works(self, motion: RodMotion, load: float) -> tuple[Form, Form]:
        """φ·Kφ and φ·Mφ."""
        phi, rod = self._shape, motion.rod

        def balance(g) -> Form:
            return rod.internal_work(g, phi) - rod.external_work(g, phi, factor=load)

        return motion.rate(balance, phi), simplify(motion.inertia(phi, phi))

    @staticmethod
    def _slope(form: Form, f: Function) -> LinearForm | None:
        slope = slope_by(form, f)
        return None if slope is None else LinearForm(slope)

    def cotangents(self, value: float, shape: np.ndarray, wanted: list[Function]) -> Vectors:
        """The derivatives by all inputs, from the eigenvalue and its vector."""
        self._shape.dat.data_wo[...] = shape
        found = Vectors()
        for f, stiffness, inertia in self._slopes:
            for factor, slope in ((1.0, stiffness), (-value, inertia)):
                if slope is not None:
                    for part, values in zip(parts(f), slope.assemble(), strict=True):
                        found.add(part, factor * values)
        self.pull(None, None, found, wanted)
        return found


class EigenvalueBlock(PreparedBlock):
    """Block of a simple eigenvalue, by the configuration and all Functions of the beam."""

    def __init__(self, slopes: EigenvalueSlopes, pair, again) -> None:
        super().__init__()
        self._slopes, self._pair, self._again = slopes, pair, again
        for f in slopes.inputs:
            self.add_dependency(f, no_duplicates=True)

    def __str__(self) -> str:
        return "an eigenvalue of VibrationModes"

    def value(self) -> AdjFloat:
        """The eigenvalue, for the tape."""
        found = AdjFloat(self._pair[0])
        self.add_output(found.create_block_variable())
        return found

    def recompute_component(self, inputs, block_variable, idx, prepared):
        with stop_annotating(), self._slopes.holding(inputs):
            self._slopes.renew(inputs)
            self._pair = self._again()
        return AdjFloat(self._pair[0])

    def _cotangents(self, inputs, wanted) -> Vectors:
        with stop_annotating(), self._slopes.holding(inputs):
            self._slopes.renew(inputs)
            return self._slopes.cotangents(*self._pair, self._slopes.data(wanted))

    def prepare_evaluate_adj(self, inputs, adj_inputs, relevant_dependencies):
        wanted = [self._slopes.inputs[k] for k, _ in relevant_dependencies]
        found, result = self._cotangents(inputs, wanted), {}
        for (k, _), f in zip(relevant_dependencies, wanted, strict=True):
            bar = found.read_all(f, Cofunction(f.function_space().dual()))
            for part in parts(bar):
                part.dat.data[...] *= float(adj_inputs[0])
            result[k] = bar
        return result

    def prepare_evaluate_tlm(self, inputs, tlm_inputs, relevant_outputs):
        given = [
            (f, v) for f, v in zip(self._slopes.inputs, tlm_inputs, strict=True) if v is not None
        ]
        found, total = self._cotangents(inputs, [f for f, _ in given]), 0.0
        for f, along in given:
            for part, move in zip(parts(f), parts(along), strict=True):
                if part in found:
                    total += float((found.of(part) * move.dat.data_ro).sum())
        return [AdjFloat(self._slopes.inputs[0].function_space().comm.allreduce(total))]


def refuse_unless_simple(values: np.ndarray, k: int, symmetric: bool, alone: bool) -> None:
    """Raise ``NotImplementedError`` where an eigenvalue has no derivative of the kind."""
    why = None
    if not alone:
        why = "of assemblies"
    elif not symmetric:
        why = "where loads are not conservative"
    elif k == len(values) - 1:
        why = "of the last mode, whose neighbour is not known: take number one larger"
    elif np.any(np.abs(np.delete(values, k) - values[k]) <= _APART * np.abs(values).max()):
        why = (
            "of a multiple eigenvalue, which has no derivative: make the section differ a little, or "
            "take the sum of those that fall together by finite differences"
        )
    if why is not None:
        raise NotImplementedError(
            f"gradients of VibrationModes.eigenvalue({k}) are not available {why}"
        )
