"""Steppers of beams and assemblies in configuration form, made for their energy and momenta."""
