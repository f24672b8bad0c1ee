"""Statics and modes on any number of ranks; as a script, writes them to the file given (.npz)."""

from __future__ import annotations

import sys

import numpy as np
from firedrake import COMM_WORLD, IntervalMesh, as_vector, dot, pi, sin
from statics.frame_cases import lees_frame
from statics.rod_cases import arch, bend, cantilever, section
from verification.parallel_beam import gathered

import fdgeom as fg


class Stiffening(fg.SectionLaw):
    """Stiffer in bending about the axis 1."""

    def energy(self, strain, stiffness):
        return 0.5 * dot(strain, stiffness * strain) + 0.25 * strain[1] ** 4


class Wind(fg.BodyLoad):
    """Drag of the right end, in air that moves."""

    def work(self, rod, g, v, t, virtual):
        # Both in the body's frame.
        air = fg.lie.quaternion.rotate_inverse(g[1], as_vector([0, 0.4, 0]))
        (_, velocity), (_, moved) = fg.lie.halves(v), fg.lie.halves(virtual)
        return -rod.place("right") * dot(velocity - air, moved)


def joined() -> dict:
    """A frame of two beams, and a beam with a law and a load of the user's."""
    out = {}
    frame = lees_frame(5)
    out["frame's modes"] = fg.VibrationModes(frame, 4, load=0.0).eigenvalues
    statics = fg.StaticEquilibrium(frame)
    out["frame's path"] = [statics.follow(0.2) for _ in range(5)]
    out["frame"] = np.concatenate(frame.shapes())
    _, corner, foot = frame.joints.joints
    forces = [statics.force(corner), statics.moment(corner), statics.force(foot)]
    out["frame's joints"] = np.concatenate(forces)

    beam = cantilever(12, 2.0, EA=1e3, law=Stiffening())
    fg.StaticEquilibrium(beam).solve(steps=2)
    out["stiffening"] = gathered(beam.position)
    blown = fg.Beam(beam.mesh, beam.section, left="clamped", law=Stiffening(), loads=Wind())
    blown.position.assign(beam.position)
    blown.orientation.assign(beam.orientation)
    stepper = fg.GeneralizedAlpha(blown, 0.01, fg.hamel_alpha(0.8))
    stepper.advance(5)
    out["in the wind"] = gathered(blown.position)
    out["in the wind, energy"] = stepper.system.energy()
    return out


def bent() -> dict:
    """A curved beam under a force at its tip, and its modes."""
    out = {}
    beam = bend(12)
    statics = fg.StaticEquilibrium(beam)
    statics.solve(steps=2)
    out["bend"], out["turned"] = gathered(beam.position), gathered(beam.orientation)
    out["stress"] = gathered(statics.stress())
    out["reaction"] = np.concatenate(statics.reactions()["left"])
    out["iterations"] = statics.solver_stats()["newton_iterations"]
    out["modes"] = fg.VibrationModes(beam, 5).eigenvalues
    return out


def everything() -> dict:
    """All results by name, the same on every rank."""
    out = joined() | bent()
    beam = arch(12)
    statics = fg.StaticEquilibrium(beam)
    out["path"] = [statics.follow(0.1) for _ in range(12)]
    out["arch"] = gathered(beam.position)

    beam = cantilever(12, EA=1e4, loads=fg.Load(force=(-1.0, 0, 0), at="right"))
    statics = fg.StaticEquilibrium(beam)
    statics.follow(1e-3)
    out["buckling"] = [p.load for p in statics.points]
    out["multiplicity"] = [p.multiplicity for p in statics.points]

    beam = fg.Beam(
        IntervalMesh(9, 1.0),
        section(1e4, 1e4, 1.0, 1.0),
        left="clamped",
        right=fg.GivenPose(position=lambda t: as_vector([1 - 0.3 * t, 0.1 * sin(pi * t), 0.2 * t])),
        loads=fg.Gravity(lambda s, t: as_vector([0, 0, -s])),
    )
    statics = fg.StaticEquilibrium(beam)
    statics.solve(time=1.0, steps=10)
    out["given"] = gathered(beam.position)
    # A load that is too much for one step must fail on all ranks, and leave all as it was.
    strict = fg.StaticEquilibrium(beam, solver_parameters={"snes_max_it": 1})
    try:
        strict.solve(time=0.1)
        out["failed"] = 0
    except fg.StepFailed:
        out["failed"] = 1
    out["kept"] = gathered(beam.position)
    return out


if __name__ == "__main__":
    results = everything()
    if COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **results)
