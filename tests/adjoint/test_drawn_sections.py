"""Sections drawn as meshes have matrices of numbers: no tape goes through them unseen."""

import pytest
from firedrake import Function, FunctionSpace, UnitSquareMesh
from firedrake.adjoint import continue_annotation

import fdgeom as fg


@pytest.mark.parametrize("varies", ["youngs_modulus", "density"])
def test_materials_made_of_functions_are_refused(varies):
    mesh = UnitSquareMesh(1, 1)
    field = Function(FunctionSpace(mesh, "DG", 0)).assign(2.0)
    numbers = {"youngs_modulus": 1.0, "poisson_ratio": 0.3, "density": 1.0}
    continue_annotation()
    with pytest.raises(NotImplementedError, match=r"Section\.from_mesh\(\) with materials"):
        fg.Section.from_mesh(mesh, fg.Isotropic(**numbers | {varies: field}))
