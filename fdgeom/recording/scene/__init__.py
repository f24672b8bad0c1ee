"""Scenes in space: pages that show a run or its modes in a browser, drawn by k3d."""

from .scene import save_scene
