"""Steppers of beams and assemblies in configuration form, with exact balances of energy or momenta.

Their mean forces and their Newton iteration are here; strains, loads and joints are in
:mod:`fdgeom.beams`.
"""
