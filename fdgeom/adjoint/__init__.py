"""Gradients of runs, on pyadjoint's tape and without a tape.

A step is a list of operations (`fdgeom.operations`), which give their derivatives, so methods need no
derivatives of their own. Steppers do not import this subpackage: they call what it has put into
`fdgeom.taping.recorders`.

- `gradient`: derivatives without a tape; `block`, `variables`: blocks and variables of pyadjoint's tape;
- `replay`, `steps`: runs from given values of their inputs, with derivatives; `lists`: operations beside
  the steps, vectors of derivatives, functionals; `compiled`: sweeps in compiled code; `coefficients`:
  data that derivatives are taken by.
"""

from fdgeom.adjoint.block import put_on_tape, record_change, record_fields, take_on_tape
from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.gradient import gradient
from fdgeom.adjoint.lists import Kept, OperationList, Vectors, keys, parts
from fdgeom.adjoint.replay import Origin, Replay
from fdgeom.adjoint.steps import StepReplay
from fdgeom.adjoint.variables import given_after_failure
from fdgeom.taping import recorders

recorders.update(changes=record_change, fields=record_fields, steps=take_on_tape)

__all__ = [
    "Coefficients",
    "Kept",
    "OperationList",
    "Origin",
    "Replay",
    "StepReplay",
    "Vectors",
    "given_after_failure",
    "gradient",
    "keys",
    "parts",
    "put_on_tape",
]
