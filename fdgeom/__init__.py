"""Geometric mechanics for Firedrake: beams, mechanical systems and their time integrators.

The public names are those in ``__all__`` of this file and of the subpackages that it imports. The
package is layered; the subpackages in the order of their imports are `lie` (groups), `operations`
(the parts of a step, with their derivatives, and dependent fields), `compile` and `execution`
(operations in compiled code, and by PETSc), `systems` (base classes of all systems), `sections` and
`beams`, `steppers` (time integrators), `adjoint` (derivatives of steps), `statics`, and `recording`
(runs and output). Each imports only those before it; only `Stepper.run` imports `recording`, when it
is called. The modules beside them serve all subpackages.
"""

from fdgeom import analysis, beams, lie, measures, recording, sections, statics, steppers, systems
from fdgeom.adjoint import gradient
from fdgeom.beams import *
from fdgeom.compile.snes_types import ChainLU, ChainNewton, LocalNewton
from fdgeom.errors import LoadStepFailed, StepFailed
from fdgeom.forms import simplify
from fdgeom.line import nodal_values
from fdgeom.operations import Assemble, Flow, Map, Solve
from fdgeom.recording import *
from fdgeom.sections import Isotropic, Orthotropic, Ply, TsaiWu, VonMises
from fdgeom.statics import *
from fdgeom.steppers import *
from fdgeom.systems import *

__version__ = "0.1.0"

#: In the form that type checkers read.
__all__ = [
    "Assemble", "ChainLU", "ChainNewton", "Flow", "Isotropic", "LoadStepFailed", "LocalNewton",
    "Map", "Orthotropic", "Ply", "Solve", "StepFailed", "TsaiWu", "VonMises", "analysis",
    "gradient", "lie", "measures", "nodal_values", "sections", "simplify",
]  # fmt: skip
__all__ += beams.__all__
__all__ += recording.__all__
__all__ += statics.__all__
__all__ += steppers.__all__
__all__ += systems.__all__


def __dir__() -> list[str]:
    """The public names, with the subpackages that authors of steppers and systems name."""
    return sorted({*__all__, "beams", "statics", "steppers", "systems", "__version__"})
