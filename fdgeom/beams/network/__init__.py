"""Beams joined to one another and to the ground: one mesh, one rod, the conditions of all joints.

Places, joints, bodies at nodes, and the assembly of them. What a single rod is (strains, loads,
inertia) does not belong here, but to :mod:`fdgeom.beams.rod`.
"""
