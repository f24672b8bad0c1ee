"""Second-order motions, on vector spaces and Lie groups: configuration, velocity, balance of forces.

What such a motion answers (`Motion`, with its `Condition` and what is `Held` of it), those that a
user states by a residual or as rigid bodies, and what every method asks of all of them: the unknown
of a solve, and the accelerations that belong to a state. Rods are motions too: :mod:`fdgeom.beams`.
How time is discretised belongs to the steppers.
"""
