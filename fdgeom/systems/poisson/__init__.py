"""Systems with a bracket: a state, an energy, a bracket and a pairing, all UFL.

Their forms at any state, the variational derivative, checks of a bracket, and the unknown of a
substep. The steppers choose the point of a step at which forms are evaluated.
"""
