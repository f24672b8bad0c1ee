"""Second-order motions, on vector spaces and Lie groups: configuration, velocity, balance of forces.

What such a motion answers (with its conditions, and what is held of it), and those that a user
states by a residual or as rigid bodies. Rods are motions too: :mod:`fdgeom.beams`. Accelerations at
the start and predictors belong to the steppers.
"""
