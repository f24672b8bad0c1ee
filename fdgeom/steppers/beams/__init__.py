"""Steppers of beams and assemblies in configuration form, made for their energy and momenta.

Their mean forces and their Newton iteration are here; strains, loads and joints themselves are not.
"""
