"""Rods in configuration form: strains, energies, inertia and loads from the poses of the nodes.

UFL expressions of poses and velocities on an interval mesh, and the motion made of them. The beam's
bracket, fields and ends are in :mod:`fdgeom.beams`.
"""
