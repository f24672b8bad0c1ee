"""Values of UFL expressions at many samples: a cell of one DG0 mesh for each sample."""

import itertools

import numpy as np
import pytest


@pytest.fixture(scope="session")
def evaluate():
    """``evaluate(build, *samples)``: the expressions of build(...), as arrays (samples, *shape).

    `samples` are arrays (n, m), or (n,) for scalars; `build` gets a DG0 Function for each and
    returns a list of expressions, which are stacked into one vector, so that one kernel is
    compiled.
    """
    from firedrake import Function, FunctionSpace, UnitIntervalMesh, VectorFunctionSpace, as_vector

    def function(samples, mesh):
        if samples.ndim == 1:
            space = FunctionSpace(mesh, "DG", 0)
        else:
            space = VectorFunctionSpace(mesh, "DG", 0, dim=samples.shape[1])
        f = Function(space)
        f.dat.data[:] = samples
        return f

    def evaluate(build, *samples):
        samples = [np.asarray(s, dtype=float) for s in samples]
        mesh = UnitIntervalMesh(len(samples[0]))
        expressions = build(*(function(s, mesh) for s in samples))
        shapes = [e.ufl_shape for e in expressions]
        components = [
            e[index] if index else e
            for e, shape in zip(expressions, shapes, strict=True)
            for index in itertools.product(*map(range, shape))
        ]
        space = VectorFunctionSpace(mesh, "DG", 0, dim=len(components))
        values = Function(space).interpolate(as_vector(components)).dat.data_ro
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(values, ends[:-1], axis=1)
        return [p.reshape(-1, *shape) for p, shape in zip(parts, shapes, strict=True)]

    return evaluate
