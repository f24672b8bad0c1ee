"""What files for ParaView hold of beams: the same fields whoever moves them, and no joints."""

import numpy as np
import pytest
from firedrake import as_vector
from recording.recording_fakes import read_vtu
from verification.joined import at_nodes, sprung_chain, straight

import fdgeom as fg
from fdgeom.lie import arrays

pytest.importorskip("vtkmodules.vtkIOXML")

NAMES = {
    "position", "director1", "director2", "director3", "curvature", "stretch", "moment", "force",
    "angular_momentum", "linear_momentum", "velocity", "angular_velocity", "body_velocity_angular",
    "body_velocity_linear",
}  # fmt: skip
STIFFNESS, INERTIA = np.array([3.0, 5.0, 8.0]), np.array([0.05, 0.02, 0.04])
CURVATURE, CELL = 0.6, 0.25
# Of a piece between two poses that cay takes from one to the other.
ANGLE = 2 * np.arctan(CURVATURE * CELL / 2)


@pytest.mark.parametrize(
    ("method", "curvature"),
    [
        (fg.PoissonIntegrator, CURVATURE),
        (fg.GeneralizedAlpha, ANGLE / CELL),
        (fg.EnergyMomentum, np.sin(ANGLE) / CELL),
        (fg.VariationalIntegrator, ANGLE / CELL),
    ],
)
def test_fields_of_a_curved_beam(tmp_path, method, curvature):
    """Before the first step and after it: curvature in the measure of the stepper."""
    beam = straight((0, 0, 0), (1, 0, 0), 4)
    beam.strain.dat.data[:, 2] = CURVATURE
    beam.momentum.interpolate(beam.inertia * as_vector([0.5, 0.0, 1.0, 2.0, 0.0, 3.0]))
    beam.reconstruct()
    stepper = method(beam, 1e-4)
    stepper.run(steps=1, output=fg.VTKOutput(tmp_path / "beam.pvd"), progress=False)
    # What a step of 1e-4 changes at most, at accelerations that are below 1e3.
    for frame, near in ((0, 1e-12), (1, 0.05)):
        _, fields, _ = read_vtu(tmp_path / "beam" / f"beam_{frame}.vtu")
        assert set(fields) == NAMES
        bent = np.zeros_like(fields["curvature"]) + [0, 0, curvature]
        assert fields["curvature"] == pytest.approx(bent, abs=near)
        assert fields["moment"] == pytest.approx(STIFFNESS * fields["curvature"], abs=1e-12)
        spin, drift = (fields[f"body_velocity_{part}"] for part in ("angular", "linear"))
        assert fields["angular_momentum"] == pytest.approx(INERTIA * spin, abs=1e-12)
        assert fields["linear_momentum"] == pytest.approx(2 * drift, abs=1e-12)
        frames = np.stack([fields[f"director{k}"] for k in (1, 2, 3)], axis=-1)
        turned = np.einsum("nij,nj->ni", frames, drift)
        assert fields["velocity"] == pytest.approx(turned, abs=1e-12)
        start = np.zeros_like(drift) + [2, 0, 3]
        assert drift == pytest.approx(start, abs=near)


def test_fields_of_an_assembly(tmp_path):
    """Each cell is a piece of a beam and says of which; stress with its viscous part."""
    assembly = sprung_chain()
    stepper = fg.GeneralizedAlpha(assembly, 0.01)
    stepper.run(steps=20, output=fg.VTKOutput(tmp_path / "a.pvd", every=20), progress=False)
    points, fields, cells = read_vtu(tmp_path / "a" / "a_1.vtu")
    assert set(fields) == NAMES | {"beam"}
    pieces = {}
    for cell in cells:
        (number,) = set(fields["beam"][cell])
        pieces.setdefault(int(number), []).append(cell)
    assert sorted(pieces) == [0, 1, 2]
    for k, beam in enumerate(assembly.beams):
        x, q = (at_nodes(beam, f) for f in (beam.position, beam.orientation))
        assert len(pieces[k]) == 2
        for cell in pieces[k]:
            i, j = (np.flatnonzero(np.abs(x - points[p]).max(axis=1) < 1e-12)[0] for p in cell)
            assert abs(i - j) == 1
            (i, j), h = sorted((i, j)), 0.5
            relative = arrays.quaternion.matrix(q[i]).T @ arrays.quaternion.matrix(q[j])
            turn = arrays.so3.log(relative)
            assert fields["curvature"][cell] == pytest.approx(np.tile(turn / h, (2, 1)), abs=1e-10)
            # The section's own damping: 0.01 times the stiffness times the rate, which is not small.
            elastic = STIFFNESS * fields["curvature"][cell]
            assert np.abs(fields["moment"][cell] - elastic).max() > 1e-6
