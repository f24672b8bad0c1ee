"""Contact of rods with obstacles.

`obstacles` has the bodies, described by the distance from their surface. `contact` has the load
that obstacles exert on a rod: the normal force from a potential, and friction.
"""
