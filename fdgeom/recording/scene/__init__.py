"""A scene in space that can be turned, as a page of its own: three.js and the shapes of a run."""

from .scene import save_scene

__all__ = ["save_scene"]
