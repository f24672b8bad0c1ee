"""Shapes of vibration modes in time, one period of each."""

import numpy as np

from fdgeom.lie.arrays import quaternion
from fdgeom.recording.snapshots import Snapshots
from fdgeom.statics.modes import VibrationModes

#: Shapes in a period, and the largest displacement as a part of the scene.
_FRAMES, _LARGEST = 24, 0.1


def shapes_of(modes: VibrationModes, time: str | None) -> tuple[Snapshots, list[dict]]:
    """All modes one after the other, and where each begins and ends; ``time``: the unit of time."""
    found = Snapshots()
    found.take(modes.beam, 0.0)
    nodal = [found.nodal(shape) for shape in modes.shapes]
    if not found.positions:
        return found, []
    (position,), (orientation,) = found.positions, found.orientations
    forces = found.forces * (_FRAMES + 1)
    extent = np.linalg.norm(np.ptp(position, axis=0))
    phase = np.sin(np.linspace(0, 2 * np.pi, _FRAMES + 1))
    cases = []
    found.times, found.positions, found.orientations, found.forces = [], [], [], []
    for k, (value, shape) in enumerate(zip(modes.eigenvalues, nodal, strict=True)):
        turn, shift = shape[:, :3], shape[:, 3:]
        # A mode that only twists has hardly any displacement: then half a radian at most.
        amplitude = min(
            _LARGEST * extent / max(np.linalg.norm(shift, axis=1).max(), 1e-300),
            0.5 / max(np.linalg.norm(turn, axis=1).max(), 1e-300),
        )
        first = len(found.times)
        for part in amplitude * phase:
            found.times.append(float(len(found.times)))
            found.positions.append(position + part * shift)
            found.orientations.append(quaternion.product(orientation, quaternion.exp(part * turn)))
        found.forces += forces
        name = _name(k, complex(value), time)
        cases.append({"name": name, "first": first, "last": len(found.times) - 1})
    return found, cases


def _name(k: int, value: complex, time: str | None) -> str:
    """The number of a mode and its frequency."""
    unit = {None: "", "s": " Hz"}.get(time, f"/{time}")
    if value.real < 0 or abs(value.imag) > 1e-7 * abs(value):
        return f"{k + 1}: unstable"
    return f"{k + 1}: f = {np.sqrt(value.real) / (2 * np.pi):.4g}{unit}"
