"""An assembly whose nodes move on SE(3) by its exponential, from the same forms as on R³×SO(3)."""

import ufl
from ufl.classes import Form

import fdgeom as fg
from fdgeom.beams.rod.variation import body_translation
from fdgeom.lie import halves, join, quaternion
from fdgeom.lie.groups import SE3


class JointsOnSE3:
    """The joints of an assembly for velocities with both parts in the body frame; at rest nothing turns."""

    def __init__(self, motion, joints):
        self._motion, self._joints = motion, joints

    def slope(self, nu, w, g=None):
        g = self._motion.configuration if g is None else g
        return self._joints.slope(nu, body_translation(g[1], w), g)

    def turning(self, nu, v, g=None):
        return Form([])

    def __getattr__(self, name):
        return getattr(self._joints, name)


class AssemblyOnSE3(fg.Assembly):
    """Velocities and increments have both parts in the body frame; spherical joints, from rest."""

    def __init__(self, other):
        beams, joints = other.beams, other.joints.joints
        super().__init__(beams, joints, loads=fg.Gravity((0, 0, -9.81)))
        self.constraint = JointsOnSE3(self, self.joints)

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
