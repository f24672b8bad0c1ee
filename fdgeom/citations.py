"""Citations: the paper of each method, for PETSc's option ``-citations`` and for the site."""

import petsctools


def _entry(key: str, kind: str, **fields: str) -> str:
    """A BibTeX entry; keywords that end in _ are those that Python has for itself."""
    lines = [f"  {name.rstrip('_')} = {{{value}}}" for name, value in fields.items()]
    return f"@{kind}{{{key},\n" + ",\n".join(lines) + "\n}\n"


def _article(key: str, author: str, title: str, journal: str, year: str, **more: str) -> str:
    return _entry(key, "article", author=author, title=title, journal=journal, year=year, **more)


_IJNME = "International Journal for Numerical Methods in Engineering"
_JCP = "Journal of Computational Physics"
_IJSS = "International Journal of Solids and Structures"
_JAM = "Journal of Applied Mechanics"
_JDC = "Journal of Dynamics and Control"

#: BibTeX entries by key.
BIBTEX: dict[str, str] = {
    text[text.index("{") + 1 : text.index(",")]: text
    for text in (
        _article(
            "ChenShi2025", "Chen, Xiao and Shi, Donghua",
            "A {Poisson} integrator for geometric exact beam", _JDC, "2025", note="In Chinese",
        ),
        _article(
            "WangAnShi2016", "Wang, Liang and An, Zhipeng and Shi, Donghua",
            "{Hamel}'s field variational integrator of geometrically exact beam",
            "Acta Scientiarum Naturalium Universitatis Pekinensis", "2016", volume="52",
            number="4", pages="692--698", note="In Chinese",
        ),
        _article(
            "McLachlanQuispelRobidoux1999",
            "McLachlan, Robert I. and Quispel, G. R. W. and Robidoux, Nicolas",
            "Geometric integration using discrete gradients",
            "Philosophical Transactions of the Royal Society A", "1999", volume="357",
            pages="1021--1045",
            doi="10.1098/rsta.1999.0363",
        ),
        _article(
            "QuispelMcLaren2008", "Quispel, G. R. W. and McLaren, D. I.",
            "A new class of energy-preserving numerical integration methods",
            "Journal of Physics A", "2008", volume="41", pages="045206",
            doi="10.1088/1751-8113/41/4/045206",
        ),
        _article(
            "HairerLubichWanner2003", "Hairer, Ernst and Lubich, Christian and Wanner, Gerhard",
            "Geometric numerical integration illustrated by the {Störmer}--{Verlet} method",
            "Acta Numerica", "2003", volume="12", pages="399--450",
            doi="10.1017/S0962492902000144",
        ),
        _entry(
            "HairerLubichWanner2006", "book",
            author="Hairer, Ernst and Lubich, Christian and Wanner, Gerhard",
            title="Geometric Numerical Integration", edition="Second", publisher="Springer",
            year="2006",
            doi="10.1007/3-540-30666-8",
        ),
        _article(
            "AustinKrishnaprasadWang1993",
            "Austin, Mark A. and Krishnaprasad, P. S. and Wang, Li-Sheng",
            "Almost {Poisson} integration of rigid body systems", _JCP, "1993", volume="107",
            pages="105--117",
        ),
        _article(
            "McLachlan1993", "McLachlan, Robert I.",
            "Explicit {Lie}--{Poisson} integration and the {Euler} equations",
            "Physical Review Letters", "1993", volume="71", pages="3043--3046",
        ),
        _article(
            "Andersen1983", "Andersen, Hans C.",
            "{RATTLE}: a ``velocity'' version of the {SHAKE} algorithm for molecular dynamics "
            "calculations", _JCP, "1983", volume="52", pages="24--34",
            doi="10.1016/0021-9991(83)90014-1",
        ),
        _article(
            "RyckaertCiccottiBerendsen1977",
            "Ryckaert, Jean-Paul and Ciccotti, Giovanni and Berendsen, Herman J. C.",
            "Numerical integration of the Cartesian equations of motion of a system with "
            "constraints: molecular dynamics of n-alkanes", _JCP, "1977", volume="23",
            pages="327--341",
            doi="10.1016/0021-9991(77)90098-5",
        ),
        _article(
            "LeimkuhlerSkeel1994", "Leimkuhler, Benedict J. and Skeel, Robert D.",
            "Symplectic numerical integrators in constrained {Hamiltonian} systems", _JCP, "1994",
            volume="112", pages="117--125",
        ),
        _article(
            "BaiGe2013", "Bai, Long and Ge, Xinsheng",
            "The discrete variational integrators method of the spherical pendulum", _JDC, "2013",
            note="In Chinese",
            number="4", pages="295--300", doi="10.6052/1672-6553-2013-077",
        ),
        _article(
            "MarsdenWest2001", "Marsden, Jerrold E. and West, Matthew",
            "Discrete mechanics and variational integrators", "Acta Numerica", "2001", volume="10",
            pages="357--514",
            doi="10.1017/S096249290100006X",
        ),
        _article(
            "CortesMartinez2001", "Cortés, Jorge and Martínez, Sonia",
            "Non-holonomic integrators", "Nonlinearity", "2001", volume="14", pages="1365--1392",
            doi="10.1088/0951-7715/14/5/322",
        ),
        _article(
            "ChungHulbert1993", "Chung, Jintai and Hulbert, Gregory M.",
            "A time integration algorithm for structural dynamics with improved numerical "
            "dissipation: the generalized-$\\alpha$ method", _JAM, "1993", volume="60",
            pages="371--375",
            doi="10.1115/1.2900803",
        ),
        _article(
            "BrulsCardona2010", "Brüls, Olivier and Cardona, Alberto",
            "On the use of {Lie} group time integrators in multibody dynamics",
            "Journal of Computational and Nonlinear Dynamics", "2010", volume="5", pages="031002",
            doi="10.1115/1.4001370",
        ),
        _entry(
            "GuLiuAnShi", "misc", author="Gu, Wei and Liu, Cheng and An, Zhipeng and Shi, Donghua",
            title="{Hamel} generalized-$\\alpha$ method", note="In Chinese",
        ),
        _article(
            "SimoTarnowDoblare1995", "Simo, J. C. and Tarnow, N. and Doblaré, M.",
            "Non-linear dynamics of three-dimensional rods: exact energy and momentum conserving "
            "algorithms", _IJNME, "1995", volume="38", pages="1431--1473",
        ),
        _article(
            "BetschSteinmann2002", "Betsch, Peter and Steinmann, Paul",
            "Frame-indifferent beam finite elements based upon the geometrically exact beam theory",
            _IJNME, "2002",
        ),
        _article(
            "Gonzalez1996", "Gonzalez, Oscar", "Time integration and discrete {Hamiltonian} systems",
            "Journal of Nonlinear Science", "1996", volume="6", pages="449--467",
            doi="10.1007/BF02440162",
        ),
        _article(
            "Demoures2015",
            "Demoures, François and Gay-Balmaz, François and Leyendecker, Sigrid and "
            "Ober-Blöbaum, Sina and Ratiu, Tudor S. and Weinand, Yves",
            "Discrete variational {Lie} group formulation of geometrically exact beam dynamics",
            "Numerische Mathematik", "2015", volume="130", pages="73--123",
            doi="10.1007/s00211-014-0659-4",
        ),
        _article(
            "Riks1979", "Riks, E.",
            "An incremental approach to the solution of snapping and buckling problems", _IJSS,
            "1979", volume="15", pages="529--551",
            doi="10.1016/0020-7683(79)90081-7",
        ),
        _article(
            "MagisanoLeonettiGarcea2017",
            "Magisano, Domenico and Leonetti, Leonardo and Garcea, Giovanni",
            "Advantages of the mixed format in geometrically nonlinear analysis of beams and shells "
            "using solid finite elements", _IJNME, "2017",
        ),
        _article(
            "Giavotto1983",
            "Giavotto, V. and Borri, M. and Mantegazza, P. and Ghiringhelli, G. and Carmaschi, V. "
            "and Maffioli, G. C. and Mussi, F.",
            "Anisotropic beam theory and applications", "Computers \\& Structures", "1983",
            doi="10.1016/0045-7949(83)90179-7",
        ),
        _article(
            "Morandini2010", "Morandini, M. and Chierichetti, M. and Mantegazza, P.",
            "Characteristic behavior of prismatic anisotropic beam via generalized eigenvectors",
            _IJSS, "2010", volume="47", pages="1327--1337",
            doi="10.1016/j.ijsolstr.2010.01.017",
        ),
        _article(
            "TsaiWu1971", "Tsai, Stephen W. and Wu, Edward M.",
            "A general theory of strength for anisotropic materials",
            "Journal of Composite Materials", "1971", volume="5", pages="58--80",
            doi="10.1177/002199837100500106",
        ),
        _article(
            "Suzuki1990", "Suzuki, Masuo",
            "Fractal decomposition of exponential operators with applications to many-body theories "
            "and {Monte Carlo} simulations", "Physics Letters A", "1990", volume="146",
            pages="319--323",
            doi="10.1016/0375-9601(90)90962-N",
        ),
        _article(
            "Yoshida1990", "Yoshida, Haruo", "Construction of higher order symplectic integrators",
            "Physics Letters A", "1990", volume="150", pages="262--268",
            doi="10.1016/0375-9601(90)90092-3",
        ),
        _article(
            "KahanLi1997", "Kahan, William and Li, Ren-Cang",
            "Composition constants for raising the orders of unconventional schemes for ordinary "
            "differential equations", "Mathematics of Computation", "1997", volume="66",
            pages="1089--1099",
            doi="10.1090/S0025-5718-97-00873-9",
        ),
        _article(
            "BlanesMoan2002", "Blanes, S. and Moan, P. C.",
            "Practical symplectic partitioned {Runge}--{Kutta} and {Runge}--{Kutta}--{Nyström} "
            "methods", "Journal of Computational and Applied Mathematics", "2002", volume="142",
            pages="313--330",
            doi="10.1016/S0377-0427(01)00492-7",
        ),
        _entry(
            "LiuLiuChangWangGuo", "misc",
            author="Liu, Shixing and Liu, Chang and Chang, Peng and Wang, Zhongwen and "
            "Guo, Yongxin",
            title="The application of symplectic geometric algorithm in a special {Chaplygin} system",
            howpublished="Acta Physica Sinica", note="In Chinese, received in April 2010",
        ),
    )
}  # fmt: skip

#: Keys by the name of a public class.
CITED: dict[str, tuple[str, ...]] = {
    "Beam": ("ChenShi2025",),
    "PoissonIntegrator": ("ChenShi2025",),
    "SymmetricPoissonIntegrator": ("ChenShi2025",),
    "HamelFieldIntegrator": ("WangAnShi2016", "ChenShi2025"),
    "ImplicitMidpoint": ("AustinKrishnaprasadWang1993",),
    "DiscreteGradient": ("McLachlanQuispelRobidoux1999", "QuispelMcLaren2008"),
    "Splitting": ("McLachlan1993",),
    "SymplecticEuler": ("HairerLubichWanner2003",),
    "StormerVerlet": ("HairerLubichWanner2003",),
    "_Gauss": ("HairerLubichWanner2006",),
    "GeneratingFunction4": ("LiuLiuChangWangGuo",),
    "RATTLE": ("Andersen1983", "LeimkuhlerSkeel1994", "BaiGe2013"),
    "SHAKE": ("RyckaertCiccottiBerendsen1977", "LeimkuhlerSkeel1994"),
    "DiscreteLagrangian": ("MarsdenWest2001", "BaiGe2013"),
    "NonholonomicMidpoint": ("CortesMartinez2001",),
    "GeneralizedAlpha": ("ChungHulbert1993", "BrulsCardona2010", "GuLiuAnShi"),
    "FourthOrderAlpha": ("GuLiuAnShi",),
    "EnergyMomentum": ("SimoTarnowDoblare1995", "BetschSteinmann2002", "Gonzalez1996"),
    "VariationalIntegrator": ("MarsdenWest2001", "Demoures2015"),
    "StaticEquilibrium": ("Riks1979", "MagisanoLeonettiGarcea2017"),
    "DrawnSection": ("Giavotto1983", "Morandini2010"),
    "TsaiWu": ("TsaiWu1971",),
    "ChaplyginSystem": ("LiuLiuChangWangGuo",),
}
#: Keys by the name of a composition's scheme.
SCHEMES: dict[str, tuple[str, ...]] = {
    "suzuki": ("Suzuki1990",),
    "yoshida": ("Yoshida1990",),
    "kahan-li": ("KahanLi1997",),
    "blanes-moan": ("BlanesMoan2002",),
}
#: Classes of no single source: classical, or fdgeom's own.
UNCITED = frozenset({"RungeKutta4", "HermiteSimpson"})


def keys_of(cls: type) -> tuple[str, ...]:
    """Keys of a class and of its base classes, the most special first."""
    found = [key for base in cls.__mro__ for key in CITED.get(base.__name__, ())]
    scheme = getattr(cls, "_scheme", None)
    if isinstance(scheme, str):
        found += SCHEMES.get(scheme, ())
    return tuple(dict.fromkeys(found))


def cite(cls: type) -> None:
    """Register the entries of a class with PETSc, for ``-citations``."""
    for key in keys_of(cls):
        petsctools.cite(key)


def bibliography() -> str:
    """All entries, as a .bib file."""
    return "\n".join(BIBTEX.values())


for _key, _text in BIBTEX.items():
    petsctools.add_citation(_key, _text)
