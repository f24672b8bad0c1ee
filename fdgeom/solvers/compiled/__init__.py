"""Local solves and pointwise updates, compiled from UFL into loops over nodes and cells."""
