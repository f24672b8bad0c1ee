"""An assembly whose nodes move on SE(3) by its exponential, from the same forms as on R³×SO(3)."""

from types import SimpleNamespace

import ufl
from ufl.classes import Form

import fdgeom as fg
from fdgeom.beams.rod.variation import body_translation
from fdgeom.lie import halves, join, quaternion
from fdgeom.lie.groups import SE3


class AssemblyOnSE3(fg.Assembly):
    """Velocities and increments have both parts in the body frame; spherical joints, from rest."""

    def __init__(self, other):
        beams, joints = other.beams, other.joints.joints
        super().__init__(beams, joints, loads=fg.Gravity((0, 0, -9.81)))
        own = self.joints

        def slope(nu, w, g=None):
            g = self.configuration if g is None else g
            return own.slope(nu, body_translation(g[1], w), g)

        # At rest nothing turns.
        self.constraint = SimpleNamespace(
            joints=own.joints,
            multiplier=own.multiplier,
            space=own.space,
            size=own.size,
            idle=own.idle,
            value=own.value,
            slope=slope,
            turning=lambda nu, v, g=None: Form([]),
            forms=own.forms,
            defect=own.defect,
            rate=own.rate,
            check_start=own.check_start,
        )

    def moved(self, increment, configuration=None):
        at = self.configuration if configuration is None else configuration
        return SE3.retract(tuple(at), increment)

    def balance(self, configuration, v, a, t, test):
        q = configuration[1]
        (spin, drift), (spin_rate, drift_rate) = halves(v, "v"), halves(a, "a")
        # ẍ = R (u̇ + Ω × u)
        a = join(spin_rate, quaternion.rotate(q, drift_rate + ufl.cross(spin, drift)))
        v, test = body_translation(q, v), body_translation(q, test)
        return super().balance(configuration, v, a, t, test)

    def inertia(self, test, direction):
        test, direction = (body_translation(self.orientation, w) for w in (test, direction))
        return super().inertia(test, direction)
