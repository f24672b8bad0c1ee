"""The generalized-α family and its relatives: steps that carry accelerations."""
