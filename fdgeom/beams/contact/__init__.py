"""Contact of rods with obstacles.

`obstacles` has the bodies, by the distance from their surface; `contact` the load that they exert on a
rod, with friction; `energy_balance` the dissipation and the work of moving obstacles. Rods and loads are in
:mod:`fdgeom.beams.rod`.
"""
