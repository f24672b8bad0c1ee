"""Second-order motions, on vector spaces and Lie groups: configuration, velocity, balance of
forces.

The base class `Motion`, with its `Condition` and its `Held` degrees of freedom, motions that a user
states by a residual or as rigid bodies, the unknown of a solve, and the accelerations of a state.
Rods are motions too: :mod:`fdgeom.beams`. Time integration is in the steppers.
"""
