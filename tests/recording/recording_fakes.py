"""Small systems and steppers with the hooks that recording needs, on real Firedrake Functions."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from firedrake import (
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    cos,
    dot,
    dx,
    sin,
    sqrt,
)

from fdgeom.errors import StepFailed
from fdgeom.systems.system import Output, System


class OscillatorOutput(Output):
    """The positions, and the radii of the circles in phase space."""

    def fields(self):
        q, p = self._system.q, self._system.p
        return {"q": q, "radius": sqrt(q**2 + p**2)}


class Oscillators(System):
    """q' = p, p' = -q in every cell: (p² + q²)/2 is kept, the flow is a rotation."""

    def __init__(self, cells=3, mesh=None):
        super().__init__(mesh or IntervalMesh(cells, float(cells)))
        space = FunctionSpace(self.mesh, "DG", 0)
        (s,) = SpatialCoordinate(self.mesh)
        self.q = Function(space, name="q").interpolate(1 + s)
        self.p = Function(space, name="p")

    def functions(self):
        return {"q": self.q, "p": self.p}

    def energies(self):
        kinetic = 0.5 * self.p**2 * dx
        potential = 0.5 * self.q**2 * dx
        return {
            "kinetic_energy": kinetic,
            "potential_energy": potential,
            "energy": kinetic + potential,
        }

    def check_start(self):
        pass

    output = cached_property(OscillatorOutput)


class RodOutput(Output):
    """A curve in space, with fields in cells, at nodes and of both."""

    def __init__(self, rod):
        super().__init__(rod, rod.position)

    def fields(self):
        rod = self._system
        a, _, _, c = (rod.orientation[i] for i in range(4))
        return {
            "strain": rod.strain,
            "momentum": rod.momentum,
            "director": as_vector([a * a - c * c, 2 * a * c, 0]),
            "stretch": rod.strain[3] * a,
        }


class Rod(System):
    """The hooks of a beam; its motion is a made-up map of each node and each cell."""

    def __init__(self, cells=4, degree=1, mesh=None, variant=None):
        super().__init__(mesh or IntervalMesh(cells, 2.0))
        cg = VectorFunctionSpace(self.mesh, "CG", degree, dim=6)
        dg = VectorFunctionSpace(self.mesh, "DG", degree - 1, dim=6, variant=variant)
        self.state = Function(dg * cg, name="state")
        self.strain, self.momentum = self.state.subfunctions
        self.position = Function(VectorFunctionSpace(self.mesh, "CG", degree, dim=3))
        self.orientation = Function(VectorFunctionSpace(self.mesh, "CG", degree, dim=4))
        (s,) = SpatialCoordinate(self.mesh)
        self.strain.interpolate(as_vector([s, s**2, sin(3 * s), 1 / (1 + s), cos(s), -s]))
        self.momentum.interpolate(as_vector([1 - s, s**3, cos(2 * s), s, sin(s), 0.3]))
        self.position.interpolate(as_vector([s, 0.1 * s**2, sin(s)]))
        self.orientation.interpolate(as_vector([cos(s / 2), 0, 0, sin(s / 2)]))

    def functions(self):
        return {
            "strain": self.strain,
            "momentum": self.momentum,
            "position": self.position,
            "orientation": self.orientation,
        }

    def check_start(self):
        pass

    def energies(self):
        return {"energy": 0.5 * dot(self.momentum, self.momentum) * dx}

    def momenta(self):
        linear = tuple(self.momentum[i] * dx for i in range(3, 6))
        angular = tuple(self.momentum[i] * dx for i in range(3))
        return {"linear_momentum": linear, "angular_momentum": angular}

    def casimirs(self):
        return {"length": self.strain[3] * dx, "twist": self.strain[0] * dx}

    output = cached_property(RodOutput)


class FakeStepper:
    """Counts its pieces; `fail_at` and `poison_at` are numbers of steps done."""

    def __init__(self, system, dt=0.1, fail_at=None, poison_at=None):
        self.system = system
        self.dt = dt
        self.t = 0.0
        self.steps = 0
        self.pieces = []
        self.fail_at = fail_at
        self.poison_at = poison_at

    def advance(self, n=1):
        self.pieces.append(n)
        for _ in range(n):
            if self.steps == self.fail_at:
                raise StepFailed("made to fail", t=self.t, step=self.steps)
            self.step()
            self.steps += 1
            self.t += self.dt

    def solver_stats(self):
        return {"steps": self.steps}


class OscillatorStepper(FakeStepper):
    def step(self):
        q, p = (f.dat.data for f in (self.system.q, self.system.p))
        c, s = np.cos(self.dt), np.sin(self.dt)
        q[:], p[:] = c * q + s * p, c * p - s * q
        if self.steps + 1 == self.poison_at:
            q[0] = np.nan


class RodStepper(FakeStepper):
    """Symplectic Euler for x'' = -x at each node; the strain turns in each cell."""

    def step(self):
        rod = self.system
        rod.momentum.dat.data[:, 3:] -= self.dt * rod.position.dat.data_ro
        rod.position.dat.data[:] += self.dt * rod.momentum.dat.data_ro[:, 3:]
        rod.orientation.dat.data[:] += self.dt * rod.orientation.dat.data_ro[:, ::-1]
        strain = rod.strain.dat.data
        strain[:] += self.dt * np.sin(strain[:, ::-1])


def state_of(system):
    """Copies of the values of all functions."""
    return {name: f.dat.data_ro.copy() for name, f in system.functions().items()}


def read_grid(path):
    """The vtkUnstructuredGrid in a .vtu or .pvtu file."""
    from vtkmodules import vtkIOXML as io

    parallel = path.suffix == ".pvtu"
    reader = io.vtkXMLPUnstructuredGridReader() if parallel else io.vtkXMLUnstructuredGridReader()
    reader.SetFileName(str(path))
    reader.Update()
    return reader.GetOutput()


def read_vtu(path):
    """Points (n, 3), point fields by name, nodes of the cells (cells, nodes)."""
    from vtkmodules.util.numpy_support import vtk_to_numpy

    grid = read_grid(path)
    data = grid.GetPointData()
    fields = {
        data.GetArrayName(i): vtk_to_numpy(data.GetArray(i))
        for i in range(data.GetNumberOfArrays())
    }
    points = vtk_to_numpy(grid.GetPoints().GetData())
    cells = vtk_to_numpy(grid.GetCells().GetConnectivityArray())
    return points, fields, cells.reshape(grid.GetNumberOfCells(), -1)
