"""Contact of rods with obstacles: the obstacles, the load that they exert, and its energy books."""
