"""Mechanical systems with constraints on position or velocity, by their energies.

The constraint, its multiplier, and projections onto it. Systems given by a balance of forces, and
those on groups, are in :mod:`fdgeom.systems.motion`.
"""

from fdgeom.systems.constrained.constraint import Constraint
