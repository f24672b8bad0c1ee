"""Run under mpiexec by test_parallel.py: `parallel_cases.py CASE FOLDER`."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from firedrake import (
    COMM_WORLD,
    Function,
    Identity,
    IntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    sin,
)
from recording_fakes import Oscillators, OscillatorStepper, Rod, RodStepper

import fdgeom as fg
from fdgeom.errors import StepFailed
from fdgeom.recording import Energy, Momentum, Probe, Snapshots, VTKOutput, resume, run, save
from fdgeom.recording.stepper_fingerprint import fingerprint

DEGREES = (1, 3)


def rod(degree):
    return RodStepper(Rod(cells=9, degree=degree))


def dump(stepper, path):
    """Values of all nodes, in the order of their first digits, to one file."""
    everything = {}
    for name, f in stepper.system.functions().items():
        values = COMM_WORLD.gather(f.dat.data_ro.copy())
        if COMM_WORLD.rank == 0:
            values = np.concatenate(values)
            everything[name] = values[np.lexsort(values.T)]
    if COMM_WORLD.rank == 0:
        np.savez(path, **everything)


def beam():
    """What its functions give is made of fields, of which each rank has a part."""
    mesh = IntervalMesh(7, 1.0)
    (s,) = SpatialCoordinate(mesh)
    section = fg.Section.rectangle(
        0.1 - 0.05 * s**2, 0.1, density=1.0, youngs_modulus=1e4, poisson_ratio=0.3
    )
    push = Function(VectorFunctionSpace(mesh, "CG", 1, dim=3))
    push.interpolate(as_vector([sin(3 * s), s, 1 / (1 + s)]))
    return fg.Beam(
        mesh,
        section,
        left=fg.GivenPose(position=lambda t: as_vector([0, 0, t])),
        loads=[fg.Load(force=push, at=3 / 7), fg.Gravity(lambda t: as_vector([0, 0, -t]))],
        reference_strain=lambda s, t: as_vector([0, s * t, 0, 0, 0, 0]),
        damping=(1 + s) * Identity(6),
    )


def box():
    """A beam whose section is drawn on a mesh that the ranks divide."""
    material = fg.Isotropic(youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)
    drawn = fg.sections.shapes.box(0.2, 0.1, 0.02, along=4, through=1)
    section = fg.Section.from_mesh(drawn.mesh, material, origin="mass")
    return fg.Beam(IntervalMesh(5, 1.0), section, right="clamped")


def write(folder):
    """All that a run writes, to a folder for this number of ranks."""
    folder = folder / str(COMM_WORLD.size)
    stepper = rod(1)
    snapshots = Snapshots(every=5)
    system = stepper.system
    history = run(
        stepper,
        steps=10,
        every=5,
        monitors=[Energy(), Momentum(), Probe("tip", system.position, 2.0)],
        output=[snapshots, VTKOutput(folder / "rod.pvd", every=5)],
        csv=folder / "a.csv",
    )
    history.to_csv(folder / "b.csv")
    assert len(snapshots.positions) == (3 if COMM_WORLD.rank == 0 else 0)
    if COMM_WORLD.rank == 0:
        np.save(folder / "shapes.npy", snapshots.positions)
    for made in (beam, box):
        still = Snapshots()
        still.take(made(), 0.0)
        still.save(folder / f"{made.__name__}.npz")
    for degree in DEGREES:
        stepper = rod(degree)
        stepper.advance(3)
        save(stepper, folder / f"rod{degree}.h5")
        stepper.advance(2)
        dump(stepper, folder / f"whole{degree}.npz")
    made = json.dumps(fingerprint(SimpleNamespace(system=beam())))
    if COMM_WORLD.rank == 0:
        (folder / "fingerprint.json").write_text(made)


def resume_all(folder):
    """Continue what one rank and what several ranks have saved."""
    for degree in DEGREES:
        for saved in sorted(folder.glob(f"*/rod{degree}.h5")):
            stepper = rod(degree)
            resume(stepper, saved)
            stepper.advance(2)
            dump(stepper, saved.with_name(f"resumed{degree}_{COMM_WORLD.size}.npz"))


def fail(folder):
    """Errors must be met by all ranks, also those that rank 0 alone can see."""
    seen = []
    for arguments in (
        {"csv": "/dev/null/a.csv"},
        {"checkpoint": "/dev/null/a.h5"},
        {"output": VTKOutput("/dev/null/a.pvd")},
    ):
        try:
            run(OscillatorStepper(Oscillators()), steps=1, **arguments)
        except ValueError as exc:
            seen.append(str(exc))
    try:
        resume(rod(1), folder / "missing.h5")
    except ValueError as exc:
        seen.append(str(exc))
    stepper = OscillatorStepper(Oscillators(), poison_at=2)
    try:
        run(stepper, steps=4, monitors=Energy(), checkpoint=folder / "poisoned.h5")
    except StepFailed as exc:
        seen.append(str(exc))
    assert len(seen) == 5, seen
    assert len(set(COMM_WORLD.allgather(tuple(seen)))) == 1


if __name__ == "__main__":
    target = Path(sys.argv[2])
    for case in sys.argv[1].split(","):
        globals()[case](target)
