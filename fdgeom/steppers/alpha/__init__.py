"""The generalized-α family and its relatives: steps that carry accelerations.

They integrate any :class:`fdgeom.systems.motion.motion.Motion`, without knowledge of its kind.
"""
