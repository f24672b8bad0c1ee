"""Materials of sections and criteria of failure."""

from firedrake import Constant, RectangleMesh

import fdgeom as fg


def changed():
    """The stress of a drawn section whose modulus has changed."""
    modulus = Constant(2.6)
    drawn = fg.Section.from_mesh(RectangleMesh(1, 1, 1.0, 1.0), fg.Isotropic(modulus, 0.3, 1.5))
    modulus.assign(5.2)
    return drawn.recover([0, 0, 0, 1, 0, 0])


def stations():
    """Sections at places, one of which is a Constant."""
    bar = {"density": 1.5, "youngs_modulus": 2.6, "poisson_ratio": 0.3}
    places = Constant(0.0, name="s"), 1.0
    return fg.Section.along([(s, fg.Section.circle(0.1, **bar)) for s in places])


REFUSALS = [
    (
        "poisson_ratio",
        lambda: fg.Isotropic(2e11, 0.5, 7850.0),
        ValueError,
        "poisson_ratio must lie in (-1, 0.5), not 0.5",
    ),
    (
        "youngs_modulus",
        lambda: fg.Isotropic(-2e11, 0.3, 7850.0),
        ValueError,
        "youngs_modulus must be a positive number, not -200000000000.0",
    ),
    (
        "density",
        lambda: fg.Isotropic(2e11, 0.3, "steel"),
        TypeError,
        "density must be a number or a UFL expression, not 'steel'",
    ),
    (
        "density",
        lambda: fg.Isotropic(2e11, 0.3),
        TypeError,
        "Isotropic.__init__() missing 1 required positional argument: 'density'",
    ),
    (
        "youngs_moduli",
        lambda: fg.Orthotropic(1e11, (1, 1, 1), (0.3, 0.3, 0.3), 1600.0),
        ValueError,
        "youngs_moduli must be three numbers, not 100000000000.0",
    ),
    (
        "shear_moduli",
        lambda: fg.Orthotropic((1e11, 1e10, 1e10), (5e9, 5e9), (0.3, 0.3, 0.3), 1600.0),
        ValueError,
        "shear_moduli must be three numbers, not (5000000000.0, 5000000000.0)",
    ),
    (
        "poisson_ratios",
        lambda: fg.Orthotropic((1e11, 1e10, 1e10), (5e9, 5e9, 5e9), (4.0, 0.3, 0.3), 1600.0),
        ValueError,
        (
            "poisson_ratios: the stiffness is not positive definite with these Young's "
            "moduli; |ν12| must stay below √(E1/E2), and so on, not (4.0, 0.3, 0.3) (the "
            "order is 12, 13, 23, with ν_ij/E_i = ν_ji/E_j)"
        ),
    ),
    (
        "density",
        lambda: fg.Orthotropic((1e11, 1e10, 1e10), (5e9, 5e9, 5e9), (0.3, 0.3, 0.3), 0.0),
        ValueError,
        "density must be a positive number, not 0.0",
    ),
    (
        "material",
        lambda: fg.Ply(1e11),
        TypeError,
        (
            "material must be a fdgeom.Isotropic, fdgeom.Orthotropic or another material "
            "with density and stress(strain, frame), not 100000000000.0"
        ),
    ),
    (
        "angle",
        lambda: fg.Ply(fg.Isotropic(2e11, 0.3, 7850.0), "45"),
        TypeError,
        "angle must be a number or a UFL expression, not '45'",
    ),
    (
        "yield_stress",
        lambda: fg.VonMises(0.0),
        ValueError,
        "yield_stress must be a positive number, not 0.0",
    ),
    (
        "yield_stress",
        lambda: fg.VonMises("235 MPa"),
        TypeError,
        "yield_stress must be a number, not '235 MPa'",
    ),
    (
        "tensile",
        lambda: fg.TsaiWu(1e9, (1e9, 1e8, 1e8), (1e8, 1e8, 1e8)),
        ValueError,
        "tensile must be three numbers, not 1000000000.0",
    ),
    (
        "compressive",
        lambda: fg.TsaiWu((1e9, 1e8, 1e8), (1e9, -1e8, 1e8), (1e8, 1e8, 1e8)),
        ValueError,
        "compressive must be a positive number, not -100000000.0",
    ),
    (
        "interaction",
        lambda: fg.TsaiWu((1e9, 1e8, 1e8), (1e9, 1e8, 1e8), (1e8, 1e8, 1e8), interaction=0.7),
        ValueError,
        "interaction must lie in [-0.5, 0.5], not 0.7",
    ),
    (
        "materials",
        changed,
        ValueError,
        (
            "the materials of a drawn section have changed since it was made: make it anew, as "
            "with Section.from_mesh(...)"
        ),
    ),
    (
        "stations",
        stations,
        TypeError,
        "stations: an arc length is read once: give a number, not …",
    ),
]
