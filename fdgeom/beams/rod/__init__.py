"""Rods in configuration form: strains, energies, inertia and loads from the poses of the nodes.

Everything is UFL of poses and velocities on an interval mesh, and the motion made of it; what a beam
is beside that (its bracket, its fields, its ends) stands one floor up, in :mod:`fdgeom.beams`.
"""
