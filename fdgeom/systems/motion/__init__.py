"""Second-order motions, on vector spaces and Lie groups: configuration, velocity, balance of forces."""
