"""PETSc options of the steppers: dict, parts, misspelled ones, and what asks for a SNES."""

import numpy as np
import pytest
from firedrake.petsc import PETSc
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.small_systems import rigid_body, wave
from ways import check_way, solvers_of

import fdgeom as fg

LOOSE = {"snes_rtol": 1e-3, "snes_stol": 0.0}


@pytest.fixture(scope="module")
def body():
    return rigid_body()[0]


@pytest.fixture(scope="module")
def beam():
    return set_smooth(fg.Beam(uneven_mesh(8), SOFT))


@pytest.fixture
def command_line():
    """Sets options as the command line would, and takes them back."""
    database, names = PETSc.Options(), []

    def set_options(**options):
        for name, value in options.items():
            database[name] = value
            names.append(name)

    yield set_options
    for name in names:
        if database.hasName(name):
            database.delValue(name)


def iterations(stepper, steps=3):
    stepper.advance(steps)
    stats = stepper.solver_stats()
    return stats["newton_iterations"] / stats["solves"]


def solvers(stepper):
    return {s.name: s.snes for s in solvers_of(stepper)}


@pytest.mark.parametrize("compiled", [True, False])
def test_tolerances(body, compiled):
    tight = iterations(fg.ImplicitMidpoint(body, 0.3, compiled=compiled))
    loose = iterations(fg.ImplicitMidpoint(body, 0.3, solver_parameters=LOOSE, compiled=compiled))
    assert loose < tight


def test_dict_reaches_the_snes(body):
    stepper = fg.ImplicitMidpoint(
        body,
        0.1,
        solver_parameters={"snes": {"rtol": 1e-5, "max_it": 7}, "ksp_type": "gmres", "pc_type": "jacobi"},
    )  # fmt: skip
    assert not stepper.is_compiled
    (snes,) = solvers(stepper).values()
    assert snes.getTolerances()[0] == 1e-5
    assert snes.getTolerances()[3] == 7
    assert snes.ksp.getType() == "gmres"
    assert snes.ksp.pc.getType() == "jacobi"
    stepper.advance(2)
    assert stepper.solver_stats()["krylov_iterations"] > stepper.solver_stats()["newton_iterations"]


def test_parts_have_their_own_options(beam):
    stepper = fg.PoissonIntegrator(
        beam,
        0.01,
        solver_parameters={"snes_max_it": 9, "momentum_snes_max_it": 4, "ksp_type": "gmres"},
    )
    found = solvers(stepper)
    assert found["momentum"].getTolerances()[3] == 4
    assert found["strain"].getTolerances()[3] == 9
    assert {s.ksp.getType() for s in found.values()} == {"gmres"}


def test_command_line_wins(beam, command_line):
    command_line(beam_snes_max_it=5, beam_momentum_snes_max_it=3, beam_strain_ksp_type="gmres")
    stepper = fg.PoissonIntegrator(
        beam,
        0.01,
        options_prefix="beam",
        solver_parameters={"snes_max_it": 9, "momentum_snes_max_it": 8},
    )
    assert not stepper.is_compiled
    found = solvers(stepper)
    assert found["momentum"].getOptionsPrefix() == "beam_momentum_"
    assert found["momentum"].getTolerances()[3] == 3
    assert found["strain"].getTolerances()[3] == 5
    assert found["strain"].ksp.getType() == "gmres"
    assert found["momentum"].ksp.getType() == "preonly"
    stepper.advance(2)


def test_without_a_prefix_the_command_line_is_not_read(body, command_line):
    command_line(snes_max_it=1, ksp_type="gmres")
    stepper = fg.ImplicitMidpoint(body, 0.3, compiled=False)
    stepper.advance()
    (snes,) = solvers(stepper).values()
    assert snes.getTolerances()[3] == 25
    assert snes.ksp.getType() == "preonly"


def test_the_user_chooses_the_convergence_test(body):
    """Three iterations, as PETSc's test "skip" takes all that are allowed."""
    parameters = {"snes_convergence_test": "skip", "snes_max_it": 3}
    stepper = fg.ImplicitMidpoint(body, 0.3, solver_parameters=parameters)
    stepper.advance(5)
    assert stepper.solver_stats()["newton_iterations"] == 15


def test_compiled_steps_read_tolerances_from_the_command_line(body, command_line):
    command_line(body_snes_max_it=1)
    stepper = fg.ImplicitMidpoint(body, 0.3, options_prefix="body", compiled=True)
    with pytest.raises(fg.StepFailed, match="too many iterations"):
        stepper.advance()


@pytest.mark.parametrize("option", ["snes_monitor", "snes_converged_reason", "snes_view"])
def test_an_option_that_shows_iterations_says_that_steps_are_not_compiled(
    body, command_line, option, monkeypatch
):
    monkeypatch.setattr("fdgeom.execution.options._warned", set())
    command_line(**{f"way_{option}": ":/dev/null"})
    words = r"option '{}' asks for PETSc SNES, which takes longer than compiled code"
    with pytest.warns(UserWarning, match=words.format(f"way_{option}")) as said:  # noqa: PT031
        stepper = fg.ImplicitMidpoint(body, 0.1, options_prefix="way")
        stepper.advance(2)
    assert len(said) == 1
    assert stepper.why_not_compiled == f"the option 'way_{option}' asks for PETSc SNES"
    check_way(stepper, False)
    beam = fg.Beam(uneven_mesh(4), SOFT, left="clamped", loads=fg.Gravity((0, 0, -1.0)))
    with pytest.warns(UserWarning, match=words.format(option)) as said:  # noqa: PT031
        statics = fg.StaticEquilibrium(beam, solver_parameters={option: ":/dev/null"})
        statics.solve()
    assert len(said) == 1
    check_way(statics, False)


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_where_it_makes_no_difference(body, command_line):
    """Who chooses a solver knows that, and what cannot be compiled goes through PETSc SNES anyway."""
    command_line(
        way_snes_monitor=":/dev/null", chosen_fdgeom_compiled=0, chosen_snes_view=":/dev/null"
    )
    for options in (
        {"options_prefix": "way", "compiled": False},
        {"options_prefix": "way", "solver_parameters": {"ksp_type": "gmres"}},
        {"options_prefix": "chosen"},
        {"solver_parameters": {"fdgeom_compiled": 0, "snes_monitor": ":/dev/null"}},
    ):
        assert not fg.ImplicitMidpoint(body, 0.1, **options).is_compiled
    wide = fg.ImplicitMidpoint(wave(), 0.1, options_prefix="way")
    assert "asks for" not in wide.why_not_compiled


@pytest.mark.parametrize(
    ("arguments", "line", "compiled"),
    [
        ({}, {}, True),
        ({"compiled": False}, {}, False),
        ({"solver_parameters": {"snes_rtol": 1e-10}}, {}, True),
        ({"solver_parameters": {"snes_type": "newtontr"}}, {}, False),
        ({"solver_parameters": {"fdgeom_compiled": 0}}, {}, False),
        ({"solver_parameters": {"fdgeom_compiled": False}}, {}, False),
        ({"options_prefix": "way"}, {"way_fdgeom_compiled": 0}, False),
        ({"options_prefix": "way"}, {"way_snes_monitor": ":/dev/null"}, False),
        ({"options_prefix": "way", "compiled": False}, {"way_fdgeom_compiled": 1}, True),
        ({"options_prefix": "way"}, {"other_snes_monitor": ":/dev/null"}, True),
    ],
)
def test_which_way_the_steps_go(body, command_line, arguments, line, compiled):
    command_line(**line)
    stepper = fg.ImplicitMidpoint(body, 0.1, **arguments)
    assert stepper.is_compiled is compiled
    stepper.advance(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snes_rtoll": 1e-8}, "'snes_rtoll'; did you mean 'snes_rtol'"),
        ({"snes_maxit": 8}, "'snes_maxit'; did you mean 'snes_max_it'"),
        ({"kps_type": "gmres"}, "'kps_type'; did you mean 'ksp_type'"),
        ({"rubbish": 1}, "'rubbish'"),
        ({"pc_typ": "jacobi"}, "'pc_typ'; did you mean 'pc_type'"),
        ({"mat_tipe": "aij"}, "'mat_tipe'; did you mean 'mat_type'"),
    ],
)
def test_unknown_option(body, options, message):
    with pytest.raises(ValueError, match=r"^solver_parameters: PETSc does not know") as caught:
        fg.ImplicitMidpoint(body, 0.1, solver_parameters=options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"body_snes_rtoll": 1e-8}, "'-body_snes_rtoll'; did you mean '-body_snes_rtol'"),
        (
            {"body_fdgeom_compild": 0},
            "'-body_fdgeom_compild'; did you mean '-body_fdgeom_compiled'",
        ),
        ({"body_pc_typ": "lu"}, "'-body_pc_typ'; did you mean '-body_pc_type'"),
    ],
)
def test_unknown_option_on_the_command_line(body, command_line, line, message):
    """Else the steps would leave compiled code for an option that says nothing."""
    command_line(**line)
    with pytest.raises(ValueError, match=r"^command line: PETSc does not know") as caught:
        fg.ImplicitMidpoint(body, 0.1, options_prefix="body")
    assert message in str(caught.value)
    # Another prefix is nobody's business.
    assert fg.ImplicitMidpoint(body, 0.1, options_prefix="other").is_compiled


def test_a_prefix_that_begins_with_another_one(body, command_line):
    """Options of the longer one are no options of the shorter one, once both are known."""
    command_line(arm_fine_ksp_type="gmres", arm_snes_rtol=1e-7)
    with pytest.raises(ValueError, match="Make the solver with options_prefix='arm_fine' first"):
        fg.ImplicitMidpoint(body, 0.1, options_prefix="arm")
    assert not fg.ImplicitMidpoint(body, 0.1, options_prefix="arm_fine").is_compiled
    assert fg.ImplicitMidpoint(body, 0.1, options_prefix="arm").is_compiled


def test_unknown_option_of_a_part_on_the_command_line(beam, command_line):
    command_line(beam_momentum_snes_rtoll=1e-8)
    with pytest.raises(ValueError, match="'-beam_momentum_snes_rtoll'; did you mean '-beam_mom"):
        fg.PoissonIntegrator(beam, 0.01, options_prefix="beam")


def test_unknown_option_that_only_a_solve_looks_up():
    """Options of nested solvers are read when these are made, in the first solve."""
    options = {"ksp_type": "gmres", "pc_type": "bjacobi", "sub_pc_type": "lu"}
    system = wave()
    fg.ImplicitMidpoint(system, 0.1, solver_parameters=options).advance()
    stepper = fg.ImplicitMidpoint(system, 0.1, solver_parameters=options | {"sub_pc_typ": "ilu"})
    before = [f.dat.data_ro.copy() for f in system.parts]
    with pytest.raises(ValueError, match="'sub_pc_typ'; did you mean 'sub_pc_type'"):
        stepper.advance()
    assert all(np.array_equal(a, f.dat.data_ro) for a, f in zip(before, system.parts, strict=True))
    assert stepper.steps == 0


def test_unknown_option_of_a_part(beam):
    with pytest.raises(ValueError, match="momentun_snes_rtol"):
        fg.PoissonIntegrator(beam, 0.01, solver_parameters={"momentun_snes_rtol": 1e-8})
    with pytest.raises(ValueError, match="snes_rtoll"):
        fg.PoissonIntegrator(beam, 0.01, solver_parameters={"momentum_snes_rtoll": 1e-8})


@pytest.mark.parametrize(
    ("option", "value"),
    [("ksp_type", "no_such_method"), ("pc_type", "lv"), ("snes_type", "newton"),
     ("mat_type", "dence"), ("snes_linesearch_type", "basics"), ("snes_rtol", "abc"),
     ("snes_max_it", "many")],
)  # fmt: skip
def test_bad_value_of_an_option(body, option, value):
    """The sentence names the option and the value; PETSc's own words come behind it."""
    words = rf"^solver_parameters: '{option}' cannot be '{value}'.* \(PETSc: "
    with pytest.raises(ValueError, match=words):
        fg.ImplicitMidpoint(body, 0.1, solver_parameters={option: value})
