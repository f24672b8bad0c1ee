"""Systems with a bracket: a state, an energy, a bracket and a pairing, all UFL.

Their forms at any state, the variational derivative, checks of a bracket, and the stage that a
substep solves for. Which point of a step the forms are taken at does not belong here.
"""
