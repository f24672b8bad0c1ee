"""The formulas of the groups in UFL."""

from fdgeom.lie import operands
from fdgeom.lie.motions import Motions
from fdgeom.lie.quaternions import Quaternions
from fdgeom.lie.rotations import Rotations

quaternion = Quaternions(operands)
so3 = Rotations(operands, quaternion)
se3 = Motions(operands, quaternion, so3)
