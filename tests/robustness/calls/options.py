"""PETSc options: names and values."""

from robustness.calls import small

import fdgeom as fg


def step(parameters, compiled=False):
    """A step with these options."""
    fg.ImplicitMidpoint(
        small.body(), 0.1, solver_parameters=parameters, compiled=compiled
    ).advance()


REFUSALS = [
    (
        "solver_parameters",
        lambda: fg.ImplicitMidpoint(small.body(), 0.1, solver_parameters=[1]),
        TypeError,
        "solver_parameters must be a dict of PETSc options, not [1]",
    ),
    (
        "solver_parameters",
        lambda: fg.ImplicitMidpoint(small.body(), 0.1, solver_parameters="-snes_view"),
        TypeError,
        "solver_parameters must be a dict of PETSc options, not '-snes_view'",
    ),
    (
        "options_prefix",
        lambda: fg.ImplicitMidpoint(small.body(), 0.1, options_prefix=3),
        TypeError,
        "options_prefix must be a string, not 3",
    ),
    (
        "snes_rtoll",
        lambda: step({"snes_rtoll": 1e-8}),
        ValueError,
        (
            "solver_parameters: PETSc does not know the option 'snes_rtoll'; did you mean "
            "'snes_rtol'?"
        ),
    ),
    (
        "sness_type",
        lambda: step({"sness_type": "newtonls"}),
        ValueError,
        (
            "solver_parameters: PETSc does not know the option 'sness_type'; did you mean "
            "'snes_type'?"
        ),
    ),
    (
        "snes_type",
        lambda: step({"snes_type": "newton"}),
        ValueError,
        "solver_parameters: 'snes_type' cannot be 'newton'; did you mean 'newtontr'? (PETSc: …)",
    ),
    (
        "ksp_type",
        lambda: step({"ksp_type": "gmress"}),
        ValueError,
        "solver_parameters: 'ksp_type' cannot be 'gmress'; did you mean 'gmres'? (PETSc: …)",
    ),
    (
        "pc_type",
        lambda: step({"pc_type": "luu"}),
        ValueError,
        "solver_parameters: 'pc_type' cannot be 'luu'; did you mean 'lu'? (PETSc: …)",
    ),
    (
        "mat_type",
        lambda: step({"mat_type": "aijj"}),
        ValueError,
        "solver_parameters: 'mat_type' cannot be 'aijj'; did you mean 'aij'? (PETSc: …)",
    ),
    (
        "snes_linesearch_type",
        lambda: step({"snes_linesearch_type": "armijo"}),
        ValueError,
        "solver_parameters: 'snes_linesearch_type' cannot be 'armijo' (PETSc: …)",
    ),
    (
        "snes_rtol",
        lambda: step({"snes_rtol": "abc"}),
        ValueError,
        "solver_parameters: 'snes_rtol' cannot be 'abc' (PETSc: …)",
    ),
    (
        "snes_rtol",
        lambda: step({"snes_rtol": "abc"}, compiled=True),
        ValueError,
        "solver_parameters: 'snes_rtol' cannot be 'abc' (PETSc: …)",
    ),
    (
        "snes_max_it",
        lambda: step({"snes_max_it": "many"}),
        ValueError,
        "solver_parameters: 'snes_max_it' cannot be 'many' (PETSc: …)",
    ),
    (
        "snes_max_it",
        lambda: step({"snes_max_it": 2.5}),
        ValueError,
        "solver_parameters: 'snes_max_it' cannot be 2.5 (PETSc: …)",
    ),
    (
        "snes_max_it",
        lambda: step({"snes_max_it": -5}),
        ValueError,
        "solver_parameters: snes_max_it must not be negative, but it is -5",
    ),
    (
        "snes_max_it",
        lambda: step({"snes_max_it": "many"}, compiled=True),
        ValueError,
        "solver_parameters: 'snes_max_it' cannot be 'many' (PETSc: …)",
    ),
    (
        "ksp_rtol",
        lambda: step({"ksp_type": "gmres", "ksp_rtol": "small"}),
        ValueError,
        "solver_parameters: 'ksp_rtol' cannot be 'small' (PETSc: …)",
    ),
    (
        "options_prefix",
        lambda: fg.ImplicitMidpoint(small.body(), 0.1, options_prefix="a b"),
        ValueError,
        "options_prefix must be one word, without - in front, such as 'beam', not 'a b'",
    ),
    (
        "options_prefix",
        lambda: fg.ImplicitMidpoint(small.body(), 0.1, options_prefix="-body"),
        ValueError,
        "options_prefix must be one word, without - in front, such as 'beam', not '-body'",
    ),
    (
        "snes_max_it",
        lambda: step({"snes_max_it": -1}),
        ValueError,
        "solver_parameters: snes_max_it must not be negative, but it is -1",
    ),
    (
        "snes_max_it",
        lambda: step({"snes_max_it": -1}, compiled=None),
        ValueError,
        "solver_parameters: snes_max_it must not be negative, but it is -1",
    ),
]
