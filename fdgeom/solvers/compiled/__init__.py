"""Local solves and pointwise updates, compiled from UFL into loops over nodes and cells.

A `Program` says what is to be done in which order, a `Unit` is that program compiled with its data.
What is not local is refused with a reason (`refused`); methods that need it solve it by PETSc.
"""
