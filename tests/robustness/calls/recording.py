"""Runs: length, monitors, files, pictures."""

import numpy as np
from firedrake import TestFunction, dS, dx
from robustness.calls import small

import fdgeom as fg

REFUSALS = [
    (
        "until",
        lambda: small.stepper().run(),
        ValueError,
        "give exactly one of until (a time) and steps (a number)",
    ),
    (
        "until",
        lambda: small.stepper().run(1.0, steps=10),
        ValueError,
        "give exactly one of until (a time) and steps (a number)",
    ),
    (
        "until",
        lambda: small.stepper().run(-1.0),
        ValueError,
        "until = -1.0 must lie ahead of the stepper's time 0.0 (dt = 0.1)",
    ),
    (
        "until",
        lambda: small.stepper().run(np.nan),
        ValueError,
        "until must be a finite number, not nan",
    ),
    ("until", lambda: small.stepper().run("1 s"), TypeError, "until must be a number, not '1 s'"),
    (
        "steps",
        lambda: small.stepper().run(steps=0),
        ValueError,
        "steps must be a positive whole number, not 0",
    ),
    (
        "steps",
        lambda: small.stepper().run(steps=2.5),
        ValueError,
        "steps must be a positive whole number, not 2.5",
    ),
    (
        "every",
        lambda: small.stepper().run(steps=1, every=0),
        ValueError,
        "every must be a positive whole number, not 0",
    ),
    (
        "progress",
        lambda: small.stepper().run(steps=1, progress="no"),
        ValueError,
        "progress must be True, False or 'always', got 'no'",
    ),
    (
        "monitors",
        lambda: small.stepper().run(steps=1, monitors="energy"),
        TypeError,
        (
            "monitors[0] must be a monitor such as Energy(), a UFL 0-form or a (name, form)"
            " pair, got 'energy'"
        ),
    ),
    (
        "monitors",
        lambda: small.stepper().run(steps=1, monitors=[3.0]),
        TypeError,
        (
            "monitors[0] must be a monitor such as Energy(), a UFL 0-form or a (name, form)"
            " pair, got 3.0"
        ),
    ),
    (
        "monitors",
        lambda: small.stepper().run(steps=1, monitors=fg.Energy),
        TypeError,
        (
            "monitors[0] must be a monitor such as Energy(), a UFL 0-form or a (name, form)"
            " pair, got the class Energy"
        ),
    ),
    (
        "monitors",
        lambda: small.stepper().run(steps=1, monitors=[fg.Energy(), fg.Energy()]),
        ValueError,
        "monitors record the name 'energy' twice; rename one",
    ),
    (
        "system",
        lambda: fg.Energy()(3),
        TypeError,
        "Energy() needs a system, such as a beam or the system of a stepper, not 3",
    ),
    (
        "system",
        lambda: fg.Momentum()(small.stepper()),
        TypeError,
        "Momentum() needs a system, such as a beam or the system of a stepper, not an"
        " ImplicitMidpoint",
    ),
    (
        "system",
        lambda: fg.Casimir().bind(fg.PoissonSystem),
        TypeError,
        "Casimir() needs a system, such as a beam or the system of a stepper, not the class"
        " PoissonSystem",
    ),
    (
        "system",
        lambda: fg.ConstraintDefect().bind("pendulum"),
        TypeError,
        "ConstraintDefect() needs a system with constraints, and str has none",
    ),
    (
        "system",
        lambda: fg.Functional("square", small.beam().position[0] * dx)(small.body()),
        ValueError,
        "monitor 'square' is integrated over another mesh than that of the system: use Functions"
        " and measures of the system's mesh",
    ),
    (
        "momenta",
        lambda: small.stepper().run(steps=1, monitors=fg.Momentum()),
        TypeError,
        "Momentum() needs a system with momenta(), and PoissonSystem has none",
    ),
    (
        "ConstraintDefect",
        lambda: small.stepper().run(steps=1, monitors=fg.ConstraintDefect()),
        TypeError,
        "ConstraintDefect() needs a system with constraints, and PoissonSystem has none",
    ),
    (
        "Reactions",
        lambda: fg.Reactions().bind(small.body()),
        TypeError,
        "Reactions() needs a beam or an assembly, not PoissonSystem",
    ),
    (
        "Casimir",
        lambda: small.stepper().run(steps=1, monitors=fg.Casimir("mass")),
        TypeError,
        "Casimir('mass') is not among the Casimirs of PoissonSystem: norm",
    ),
    (
        "output",
        lambda: small.stepper().run(steps=1, output="beam.pvd"),
        TypeError,
        (
            "output must be an output object or a sequence of them, such as "
            "VTKOutput(path); got 'beam.pvd'"
        ),
    ),
    (
        "output",
        lambda: small.stepper().run(steps=1, output=fg.Snapshots),
        TypeError,
        (
            "output must be an output object or a sequence of them, such as "
            "VTKOutput(path); got the class Snapshots"
        ),
    ),
    (
        "output.coordinates",
        lambda: small.stepper().run(steps=1, output=fg.Snapshots()),
        TypeError,
        "Snapshots needs a system with output.coordinates, and PoissonSystem has none",
    ),
    (
        "csv",
        lambda: small.stepper().run(steps=1, csv="/proc/none/table.csv"),
        ValueError,
        "csv = '/proc/none/table.csv' cannot be written: …",
    ),
    (
        "csv",
        lambda: small.stepper().run(steps=1, csv=3),
        TypeError,
        "csv must be the name of a file, not 3",
    ),
    (
        "path",
        lambda: small.stepper().run(steps=1, checkpoint="/proc/none/state.h5"),
        ValueError,
        "path = '/proc/none/state.h5' cannot be written: …",
    ),
    (
        "path",
        lambda: small.stepper().run(steps=1, checkpoint=3),
        TypeError,
        "path must be the name of a file, not 3",
    ),
    (
        "stepper",
        lambda: fg.run(small.body(), steps=1),
        TypeError,
        (
            "stepper must be a stepper of a system, such as ImplicitMidpoint(system, dt), "
            "not a PoissonSystem"
        ),
    ),
    (
        "every",
        lambda: fg.Snapshots(every=0),
        ValueError,
        "every must be a positive whole number, not 0",
    ),
    (
        "every",
        lambda: fg.Checkpoint("state.h5", every=-1),
        ValueError,
        "every must be a positive whole number, not -1",
    ),
    ("path", lambda: fg.Checkpoint(3), TypeError, "path must be the name of a file, not 3"),
    ("csv", lambda: fg.CSVFile(None), TypeError, "csv must be the name of a file, not None"),
    ("path", lambda: fg.VTKOutput("beam.vtk"), ValueError, "path must end in .pvd, got 'beam.vtk'"),
    (
        "every",
        lambda: fg.VTKOutput("beam.pvd", every=1.5),
        ValueError,
        "every must be a positive whole number, not 1.5",
    ),
    (
        "fields",
        lambda: fg.VTKOutput("beam.pvd", fields="strain"),
        ValueError,
        "fields must be a sequence of names, got the string 'strain'",
    ),
    (
        "path",
        lambda: fg.resume(small.stepper(), "/no/such/file.h5"),
        ValueError,
        "path = '/no/such/file.h5' cannot be resumed from: there is no such file",
    ),
    (
        "path",
        lambda: fg.resume(small.stepper(), __file__),
        ValueError,
        "path = '…' cannot be resumed from: it is damaged or was not written by fdgeom (…)",
    ),
    (
        "ax",
        lambda: fg.space_axes(None, [[0, 0, 0]]),
        TypeError,
        "ax must be 3-D axes, such as figure.add_subplot(projection='3d'), not NoneType",
    ),
    ("path", lambda: fg.VTKOutput(3), TypeError, "path must be the name of a file, not 3"),
    (
        "path",
        lambda: fg.save(small.stepper(), "/proc/none/state.h5"),
        ValueError,
        "path = '/proc/none/state.h5' cannot be written: …",
    ),
    (
        "path",
        lambda: fg.save(small.stepper(), "/"),
        ValueError,
        "path = '/' cannot be written: it is a folder; give the name of a file",
    ),
    (
        "path",
        lambda: fg.save(small.stepper(), "/dev/null"),
        ValueError,
        (
            "path = '/dev/null' cannot be written: it is a device or a pipe, which is not replaced;"
            " give another name"
        ),
    ),
    (
        "path",
        lambda: fg.resume(small.stepper(), "/dev/null"),
        ValueError,
        "path = '/dev/null' cannot be resumed from: it is a folder, a device or a pipe",
    ),
    ("path", lambda: fg.History.from_csv(0), TypeError, "path must be the name of a file, not 0"),
    (
        "path",
        lambda: fg.History.from_csv(__file__),
        ValueError,
        "path = '…' is not a table of samples: it must begin with the columns t, step, not …",
    ),
    (
        "path",
        lambda: fg.Section.load("/no/such/section.json"),
        ValueError,
        "path = '/no/such/section.json' is not a section written by fdgeom: …",
    ),
    (
        "title",
        lambda: fg.save_scene("a.html", fg.Snapshots(), title=3),
        TypeError,
        "title must be a string, not 3",
    ),
    (
        "parameter",
        lambda: fg.save_scene("a.html", fg.Snapshots(), parameter=None),
        TypeError,
        "parameter must be a string, not None",
    ),
    (
        "stepper",
        lambda: fg.save(small.body(), "state.h5"),
        TypeError,
        (
            "stepper must be a stepper of a system, such as ImplicitMidpoint(system, dt), "
            "not a PoissonSystem"
        ),
    ),
    (
        "stepper",
        lambda: fg.resume(small.body(), "state.h5"),
        TypeError,
        (
            "stepper must be a stepper of a system, such as ImplicitMidpoint(system, dt), "
            "not a PoissonSystem"
        ),
    ),
    (
        "name",
        lambda: fg.Functional(3, small.number() * dx),
        TypeError,
        "name must be a string, not 3",
    ),
    (
        "density",
        lambda: fg.Functional("density", small.number()),
        TypeError,
        (
            "'density' must be a 0-form, a UFL form without arguments, got a Function "
            "(multiply it by a measure, say dx)"
        ),
    ),
    (
        "load",
        lambda: fg.Functional("load", TestFunction(small.number().function_space()) * dx),
        TypeError,
        "'load' must be a 0-form, a UFL form without arguments, got a UFL form",
    ),
    (
        "norm",
        lambda: fg.Casimir("norm", "m.m"),
        TypeError,
        "'norm' must be a 0-form, a UFL form without arguments, got 'm.m'",
    ),
    (
        "function",
        lambda: fg.Probe("middle", 3.0, 0.5),
        TypeError,
        "function must be a firedrake.Function or a UFL expression of Functions, got 3.0",
    ),
    (
        "point",
        lambda: fg.Probe("middle", small.number(), "centre"),
        TypeError,
        "point must be a number or numbers, not 'centre'",
    ),
    (
        "point",
        lambda: fg.Probe("middle", small.number(), 99.0).bind(small.oscillator()),
        ValueError,
        "point = [99.] of Probe('middle'): it is outside the mesh",
    ),
    (
        "speed",
        lambda: small.history()["speed"],
        KeyError,
        "\"no monitor recorded 'speed'; recorded are energy\"",
    ),
    (
        "path",
        lambda: fg.History.from_csv("/no/such/table.csv"),
        ValueError,
        "path = '/no/such/table.csv' is not a table of samples: …",
    ),
    (
        "path",
        lambda: small.history().to_csv("/proc/none/table.csv"),
        ValueError,
        "path = '/proc/none/table.csv' cannot be written: …",
    ),
    (
        "history",
        lambda: fg.plot_energy(small.stepper()),
        TypeError,
        "history must be a History as run(...) returns it, not an ImplicitMidpoint",
    ),
    (
        "Energy()",
        lambda: fg.plot_energy(fg.History()),
        ValueError,
        "history holds no energy; it has nothing. Add Energy() to the run's monitors",
    ),
    (
        "names",
        lambda: fg.plot_energy(small.history(), names="energy"),
        TypeError,
        "names must be a sequence of recorded names, such as ['energy']",
    ),
    (
        "heat",
        lambda: fg.plot_energy(small.history(), names=["heat"]),
        ValueError,
        "history holds no heat; it has energy. Add Energy() to the run's monitors",
    ),
    (
        "Momentum()",
        lambda: fg.plot_momentum(small.history()),
        ValueError,
        "history holds no such quantity; it has energy. Add Momentum() to the run's monitors",
    ),
    (
        "units",
        lambda: fg.plot_energy(small.history(), units="metric"),
        TypeError,
        "units must be 'SI' or a dict such as {'time': 'ms', 'length': 'mm'}, not 'metric'",
    ),
    (
        "units",
        lambda: fg.plot_energy(small.history(), units={"enrgy": "J"}),
        ValueError,
        (
            "units: 'enrgy' is not among time, length, energy, force, moment, "
            "linear_momentum, angular_momentum; did you mean 'energy'?"
        ),
    ),
    (
        "units",
        lambda: fg.plot_energy(small.history(), units={"energy": 1.0}),
        TypeError,
        "units: that of 'energy' must be a string, not 1.0",
    ),
    (
        "snapshots",
        lambda: fg.plot_shapes(small.history()),
        TypeError,
        "snapshots must be a Snapshots that a run has filled, not a History",
    ),
    (
        "snapshots",
        lambda: fg.plot_shapes(fg.Snapshots()),
        ValueError,
        "snapshots is empty: give it to run(..., output=snapshots) first",
    ),
    (
        "count",
        lambda: fg.plot_shapes(fg.Snapshots(), count=0),
        ValueError,
        "count must be a positive whole number, not 0",
    ),
    (
        "path",
        lambda: fg.animate(fg.Snapshots(), "motion.mp4"),
        ValueError,
        "path must end in .gif, got 'motion.mp4'",
    ),
    (
        "fps",
        lambda: fg.animate(fg.Snapshots(), "motion.gif", fps=0),
        ValueError,
        "fps must be a positive whole number, not 0",
    ),
    (
        "shapes",
        lambda: fg.save_scene("run.html", small.history()),
        TypeError,
        "shapes must be a Snapshots that a run has filled, or VibrationModes, not a History",
    ),
    (
        "shapes",
        lambda: fg.save_scene("run.html", fg.Snapshots()),
        ValueError,
        "shapes is empty: give it to run(..., output=shapes) first",
    ),
    (
        "path",
        lambda: fg.save_scene("run.png", fg.Snapshots()),
        ValueError,
        "path must end in .html, got 'run.png'",
    ),
    (
        "outline",
        lambda: fg.save_scene("run.html", fg.Snapshots(), outline="round"),
        ValueError,
        "outline must be one of 'rectangle', 'ellipse', not 'round'",
    ),
    (
        "thickness",
        lambda: fg.save_scene("run.html", fg.Snapshots(), thickness=-0.1),
        ValueError,
        "thickness must be a positive length or two, not -0.1",
    ),
    (
        "fields",
        lambda: fg.Snapshots(fields="curvature"),
        ValueError,
        "fields must be a sequence of names, such as ['curvature']",
    ),
    (
        "path",
        lambda: fg.Snapshots().save("run.h5"),
        ValueError,
        "path must end in .npz, got 'run.h5'",
    ),
    (
        "path",
        lambda: fg.Snapshots.load("nowhere.npz"),
        ValueError,
        "path = 'nowhere.npz' holds no snapshots: [Errno 2] No such file or directory: 'nowhere.npz'",
    ),
    (
        "bent",
        lambda: fg.ImplicitMidpoint(small.body(), 0.1).run(
            steps=1, monitors=fg.Functional("bent", small.beam().position[0] * dx)
        ),
        ValueError,
        "monitor 'bent' is integrated over another mesh than that of the system: use"
        " Functions and measures of the system's mesh",
    ),
    (
        "bent",
        lambda: fg.ImplicitMidpoint(small.body(), 0.1).run(
            steps=1, monitors=fg.Functional("bent", small.number() * dx(domain=small.mesh()))
        ),
        ValueError,
        "monitor 'bent' is integrated over one mesh and holds Functions of another: use"
        " Functions of one mesh, and dx(domain=mesh) of that mesh",
    ),
    (
        "both",
        lambda: fg.Functional("both", small.number() * dx + small.beam().position[0] * dx),
        ValueError,
        "monitor 'both' is integrated over several meshes: use integrals over one mesh",
    ),
    (
        "edges",
        lambda: fg.Functional("edges", small.number() * dS),
        ValueError,
        "monitor 'edges': in integrals over dS, restrict discontinuous Functions to one"
        " side, as u('+') or u('-'), or use avg(u) or jump(u) (Discontinuous type"
        " Coefficient must be restricted.)",
    ),
    (
        "name",
        lambda: fg.Casimir(small.number() * dx),
        TypeError,
        "name must be a string, not a UFL form; a form is given as form=",
    ),
    (
        "objective",
        lambda: fg.gradient(
            small.stepper(),
            1,
            small.number() * dx + small.beam().position[0] * dx,
            [small.body().state],
        ),
        ValueError,
        "objective is integrated over several meshes: use integrals over one mesh",
    ),
    (
        "running",
        lambda: fg.gradient(
            small.stepper(),
            1,
            small.body().state[0] * dx,
            [small.body().state],
            running=small.number() * dx(domain=small.mesh()),
        ),
        ValueError,
        "running is integrated over one mesh and holds Functions of another: use"
        " Functions of one mesh, and dx(domain=mesh) of that mesh",
    ),
    (
        "point",
        lambda: small.stepper().run(
            steps=1, monitors=fg.Probe("tip", small.body().state, (0.5, 0.5))
        ),
        ValueError,
        "point must have 1 coordinates, as the mesh of Probe 'tip' has, not [0.5, 0.5]",
    ),
    (
        "steps",
        lambda: small.stepper().run(steps=np.zeros(3)),
        ValueError,
        "steps must be a positive whole number, not array([0., 0., 0.])",
    ),
    (
        "progress",
        lambda: small.stepper().run(steps=1, progress=np.zeros(3)),
        ValueError,
        "progress must be True, False or 'always', got array([0., 0., 0.])",
    ),
    (
        "name",
        lambda: fg.Probe(["tip"], small.scalar(), 0.5),
        TypeError,
        "name must be a string, not ['tip']",
    ),
    (
        "keep",
        lambda: small.stepper().run(steps=1, keep=np.eye(2)),
        ValueError,
        "keep must be a whole number that is not negative, not an array of shape (2, 2)",
    ),
]
