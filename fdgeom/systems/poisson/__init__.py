"""Systems with a bracket: a state, an energy, a bracket and a pairing, all UFL."""
