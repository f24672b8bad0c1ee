"""A step that fails says where it is worst, and advises what can help."""

import numpy as np
import pytest
from firedrake import Function, UnitSquareMesh, VectorFunctionSpace, dx
from verification.small_systems import blow_up, canonical, pairing

import fdgeom as fg


@pytest.mark.parametrize("compiled", [True, False])
def test_the_worst_node_is_named(compiled):
    """One of a hundred copies has no solution: the middle of its cell is in the reason."""
    start = np.tile([1.0, 1.0], (100, 1))
    start[63, 0] = 20.0
    with pytest.raises(fg.StepFailed, match="the node at 63.5") as caught:
        fg.ImplicitMidpoint(blow_up(start), 0.1, compiled=compiled).advance()
    assert "residual" in caught.value.reason


@pytest.mark.parametrize("compiled", [True, False])
def test_the_worst_node_of_a_plane_mesh(compiled):
    """q' = q² there is blow_up's system; the middle of the cell is that of its three corners."""
    mesh = UnitSquareMesh(2, 2)
    z = Function(VectorFunctionSpace(mesh, "DG", 0, dim=2)).assign(1.0)
    z.dat.data_wo[5, 0] = 20.0
    system = fg.PoissonSystem(z, z[0] ** 2 * z[1] * dx, canonical, pairing)
    corners = mesh.coordinates.dat.data_ro[mesh.coordinates.cell_node_map().values[5]]
    x, y = corners.mean(axis=0)
    with pytest.raises(fg.StepFailed) as caught:
        fg.ImplicitMidpoint(system, 0.1, compiled=compiled).advance()
    assert f"the node at ({x:.6g}, {y:.6g})" in caught.value.reason


def test_what_is_advised():
    """A first step fails for its data as often as for its length; absurd numbers only for those."""
    first = str(fg.StepFailed("it diverged", t=0.0, step=0))
    assert first.endswith(
        "try a smaller dt or other solver_parameters; if no step is short enough, check the data: "
        "units, masses and stiffnesses, loads, the start."
    )
    later = str(fg.StepFailed("it diverged", t=1.0, step=10, residual=1e57))
    assert "smaller dt" in later
    assert "data" not in later
    for residual in (1e69, np.inf, np.nan):
        absurd = str(fg.StepFailed("it diverged", t=0.0, step=0, residual=residual))
        assert "check the data:" in absurd
        assert "smaller" not in absurd


def test_wrong_data_are_not_blamed_on_the_step():
    """The square of the start is beyond what a double holds."""
    stiff = blow_up([1e200, 1.0])
    with pytest.raises(fg.StepFailed) as caught:
        fg.ImplicitMidpoint(stiff, 0.1, compiled=False).advance()
    assert "check the data" in str(caught.value)
    assert "smaller" not in str(caught.value)
    assert not caught.value.residual < 1e30
