"""Scenes in space: pages that show a run, or vibration modes, in a browser.

`scene` writes the page and has the shapes of modes, `picture` builds the plot for k3d, which draws
it, `geometry` has the surfaces of rods, supports, joints and loads.
`controls.js` and `controls.css` are the slider, the choice of field, the colour bar and the camera.
"""

from .scene import save_scene
