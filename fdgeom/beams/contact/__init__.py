"""Contact of rods with obstacles: `obstacles` has the bodies, by the distance from their surface, and
`contact` the load that they exert on a rod, with friction.
"""
