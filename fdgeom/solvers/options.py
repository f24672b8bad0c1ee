"""PETSc options of a stepper: defaults, the user's dict, the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from petsc4py import PETSc
from petsctools import flatten_parameters

# Looked up while solving or when a nested object is made, so not used up by setFromOptions.
_READ_LATER = (
    "view", "reason", "test", "monitor", "sub_", "fieldsplit_", "mg_", "mat_", "pc_", "esteig_",
    "python", "assembled_", "schur_", "npc_",
)  # fmt: skip


def check_parameters(solver_parameters, options_prefix) -> tuple[dict, str]:
    """Validate and flatten what the user gave.

    Returns
    -------
    dict, str
        Flat options, and the prefix with a trailing underscore ("" if there is none).

    Raises
    ------
    TypeError
        If ``solver_parameters`` is no dict or ``options_prefix`` no string.
    """
    if solver_parameters is not None and not isinstance(solver_parameters, Mapping):
        raise TypeError(
            f"solver_parameters must be a dict of PETSc options, not {type(solver_parameters).__name__}"
        )
    if options_prefix is not None and not isinstance(options_prefix, str):
        raise TypeError(f"options_prefix must be a string, not {type(options_prefix).__name__}")
    prefix = options_prefix or ""
    if prefix and not prefix.endswith("_"):
        prefix += "_"
    return flatten_parameters(dict(solver_parameters or {})), prefix


# Tolerances mean the same to the compiled path; anything else asks for a SNES.
_SAME = ("snes_rtol", "snes_atol", "snes_stol", "snes_max_it")
_COMPILED = "fdgeom_compiled"


def wants_compiled(given: dict, prefix: str, argument: bool | None) -> bool:
    """Whether the steps may run in compiled code; takes ``fdgeom_compiled`` out of ``given``.

    The command line wins over the dict, which wins over the argument.
    """
    if argument is not None and not isinstance(argument, bool):
        raise TypeError(f"compiled must be True, False or None, not {argument!r}")
    database = PETSc.Options()
    choice = argument
    if _COMPILED in given:
        choice = str(given.pop(_COMPILED)).lower() not in ("0", "false", "no", "off")
    if prefix and database.hasName(prefix + _COMPILED):
        choice = database.getBool(prefix + _COMPILED)
    return not asking_for_snes(given, prefix) if choice is None else choice


def asking_for_snes(given: Mapping, prefix: str) -> list[str]:
    """The options of a stepper that compiled steps cannot heed."""
    keys = list(given)
    if prefix:
        keys += [k for k in PETSc.Options().getAll() if k.startswith(prefix)]
    return [k for k in keys if not k.endswith((*_SAME, _COMPILED))]


def options_of(given: Mapping, name: str, others: Iterable[str]) -> dict:
    """What a user's options say to one solve: those for all, and over them those under its name."""
    names = tuple(f"{n}_" for n in others if n)
    result = {k: v for k, v in given.items() if not (names and k.startswith(names))}
    own = f"{name}_" if name else ""
    if own:
        result.update({k[len(own) :]: v for k, v in given.items() if k.startswith(own)})
    return result


def merge(
    defaults: Mapping, given: Mapping, prefix: str, name: str, others: Iterable[str]
) -> tuple[dict, str, dict]:
    """Options of one solve of a stepper, its own prefix, and what of the options the dict gave.

    Later ones win: the defaults; the user's dict; there, entries under ``name``; the command line
    under ``prefix``; there, under ``prefix + name``.

    Parameters
    ----------
    defaults, given : dict
        Flat options.
    prefix : str
        The stepper's prefix, "" if it has none: then the command line is not read.
    name : str
        Name of the solve ("" if the stepper has only one).
    others : iterable of str
        Names of all solves of the stepper.
    """
    names = tuple(f"{n}_" for n in others if n)
    own = f"{name}_" if name else ""
    mine = _of_one_solve(given, names, own)
    result = {**defaults, **mine}
    if prefix:
        database = PETSc.Options()
        line = {k: v for k, v in database.getAll().items() if k.startswith(prefix)}
        for key in line:
            database.getString(key)  # looked up, so PETSc does not call it unused
        line = {k.removeprefix(prefix): v for k, v in line.items()}
        line.pop(_COMPILED, None)
        result.update(_of_one_solve(line, names, own))
    return result, prefix + own, mine


def _of_one_solve(options: Mapping, names: tuple[str, ...], own: str) -> dict:
    """Those for all solves, then those under the name of this one."""
    result = (
        {k: v for k, v in options.items() if not k.startswith(names)} if names else dict(options)
    )
    if own:
        result.update({k[len(own) :]: v for k, v in options.items() if k.startswith(own)})
    return result


def refuse_unknown(options: Mapping, used: Iterable[str], known: Iterable[str]) -> None:
    """Raise ``ValueError`` for options of the user's that no PETSc object has looked up."""
    used = set(used)
    for key in options:
        if key in used or any(word in key for word in _READ_LATER):
            continue
        near = difflib.get_close_matches(key, [*used, *known], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"solver_parameters: PETSc does not know the option {key!r}{hint}")
