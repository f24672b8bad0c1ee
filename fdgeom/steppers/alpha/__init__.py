"""The generalized-α family and its relatives: steps that carry accelerations.

They move any :class:`fdgeom.systems.motion.motion.Motion`, and know none of its kinds.
"""
