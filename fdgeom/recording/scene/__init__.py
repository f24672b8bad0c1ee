"""A scene in space that can be turned, as a page of its own: three.js and the shapes of a run.

What a system shows of itself is asked of it; pictures by matplotlib stand one floor up, in
:mod:`fdgeom.recording`.
"""

from .scene import save_scene
