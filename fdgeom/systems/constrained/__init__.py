"""Mechanical systems with constraints on position or velocity, by their energies."""
