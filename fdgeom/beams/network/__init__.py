"""Beams joined to one another and to the ground: one mesh, one rod, the conditions of all joints."""
