"""Sections on several ranks: writes what must not depend on their number."""

import sys

import numpy as np
from firedrake import COMM_WORLD, assemble, cos, dx
from sections.drawn import BECAS, STEEL, rectangle

import fdgeom as fg


def results():
    """Matrices, centres and integrals of the stress of two sections."""
    drawn = fg.Section.from_mesh(
        rectangle(1.0, 0.75, 8), fg.Ply(BECAS, 0.5, 0.4), origin="tension", axis=1
    )
    tube = fg.sections.tube(1.0, 0.8, layers=(1, 2), along=4)
    plies = tube.lay([(BECAS, 0.5), STEEL])
    wound = fg.Section.from_mesh(tube.mesh, plies)
    stress = wound.recover([1, 2, 3, 4, 5, 6])
    index = wound.failure_index([1, 2, 3, 4, 5, 6], fg.VonMises(2.0))
    change = drawn.derivative("angle")[0]
    weights = np.cos(np.arange(36.0)).reshape(6, 6)
    parameters = [("angle", None), (("youngs_moduli", 0), None), ("density", None)]
    return {
        "stiffness": drawn.stiffness,
        "inertia": drawn.inertia,
        "centres": np.array([drawn.origin, drawn.shear_centre, drawn.mass_centre]),
        "change": change,
        "gradient": drawn.gradient(weights, parameters, inertia_weights=weights),
        "wound": wound.stiffness,
        "tangent": np.array([assemble((2 + cos(tube.tangent)) * dx)]),
        "stress": np.array(
            [[assemble(stress[i, j] ** 2 * dx) for i in range(3)] for j in range(3)]
        ),
        "index": np.array([assemble(index**2 * dx)]),
    }


if __name__ == "__main__":
    found = results()
    if COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **found)
