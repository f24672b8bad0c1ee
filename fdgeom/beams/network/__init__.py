"""Beams joined to one another and to the ground: one mesh, one rod, the conditions of all joints.

Places, joints, bodies at nodes, and the assembly of them. Single rods (strains, loads, inertia) are
in :mod:`fdgeom.beams.rod`.
"""
