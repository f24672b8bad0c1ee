"""Beams joined to one another and to the ground."""
