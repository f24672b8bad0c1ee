"""PETSc options of a stepper: defaults, the user's dict, the command line."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from petsc4py import PETSc
from petsctools import flatten_parameters

from fdgeom.messages import format_value
from fdgeom.validation import instance, text

# PETSc looks these up while it solves, or when it makes a nested object.
_READ_LATER = re.compile(
    r".*(view|reason|test|monitor)"
    r"|(sub|fieldsplit|mg|esteig|python|assembled|schur|npc)_"
    r"|(mat|pc)_[^_]+_"
)
# Limits on the number of iterations.
_COUNTS = ("snes_max_it", "ksp_max_it")
#: The option that selects compiled code.
COMPILED = "fdgeom_compiled"
# Read by fdgeom itself, too.
_MATRIX = "mat_type"
_DICT = "solver_parameters"


def check_parameters(solver_parameters, options_prefix) -> tuple[dict, str]:
    """The user's options, validated and flat, and the prefix with a trailing underscore ("" if none)."""
    if solver_parameters is not None:
        instance("solver_parameters", solver_parameters, Mapping, "a dict of PETSc options")
    prefix = "" if options_prefix is None else text("options_prefix", options_prefix)
    if not re.fullmatch(r"([^\s-]\S*)?", prefix):
        raise ValueError(
            f"options_prefix must be one word, without - in front, such as 'beam', not {format_value(prefix)}"
        )
    if prefix and not prefix.endswith("_"):
        prefix += "_"
    return flatten_parameters(dict(solver_parameters or {})), prefix


#: The options that compiled code understands.
TOLERANCES = ("snes_rtol", "snes_atol", "snes_stol", "snes_max_it")


def list_on_help(owner: str, prefix: str, names: Iterable[str], comm) -> None:
    """List the options that fdgeom itself reads if ``-help`` is given; PETSc lists those of each SNES."""
    if not PETSc.Options().hasName("help"):
        return
    lines = [f"fdgeom: options of {owner}"]
    if not prefix:
        lines += ["  none from the command line: it has no options_prefix"]
    else:
        solves = ", ".join(f"-{prefix}{name}_" for name in dict.fromkeys(names) if name)
        lines += [
            f"  -{prefix}{COMPILED}: <true> Steps in compiled code; false: through PETSc SNES",
            *(
                f"  -{prefix}{name}: of Newton's method, in compiled code too"
                for name in TOLERANCES
            ),
            *([f"  {solves}...: the same, for one of its solves"] if solves else []),
            f"  -{prefix}...: any other option of PETSc's SNES, KSP and PC selects PETSc SNES",
        ]
    PETSc.Sys.Print("-" * 40, *lines, sep="\n", comm=comm)


def merge(
    defaults: Mapping, user: Mapping, prefix: str, name: str, others: Iterable[str]
) -> tuple[dict, str, dict]:
    """Options of the solve ``name`` of a stepper, its prefix, and where the user wrote which of them."""
    # Later ones override: the defaults; the user's dict; its entries under `name`; the command line
    # under `prefix` (not read if that is ""); the command line under `prefix + name`. `others` are the
    # names of all solves; places are "solver_parameters" or the option as on the command line.
    names = tuple(f"{n}_" for n in others if n)
    own = f"{name}_" if name else ""
    mine = _of_one_solve(user, names, own)
    result, wrote = {**defaults, **mine}, dict.fromkeys(mine, _DICT)
    if prefix:
        database = PETSc.Options()
        line = {k: v for k, v in database.getAll().items() if k.startswith(prefix)}
        line.pop(prefix + COMPILED, None)
        for key in line:
            if names and not key.removeprefix(prefix).startswith(names):
                database.getString(key)  # else PETSc reports it as unused: it sees other names
        line = {k.removeprefix(prefix): v for k, v in line.items()}
        result.update(_of_one_solve(line, names, own))
        wrote.update(_of_one_solve({k: f"-{prefix}{k}" for k in line}, names, own))
    for key, where in wrote.items():
        if key in _COUNTS and str(result[key]).strip().startswith("-"):
            place = f"{_DICT}: {key}" if where == _DICT else f"command line: {where}"
            raise ValueError(f"{place} must not be negative, but it is {result[key]}")
    return result, prefix + own, wrote


@dataclass(frozen=True)
class SolveOptions:
    """The user's PETSc options for one solve of a stepper."""

    #: Options of the stepper.
    user: Mapping
    prefix: str
    #: Name of the solve, and (``names``) of all solves of the stepper.
    name: str = ""
    names: tuple[str, ...] = ()

    def over(self, base: Mapping) -> tuple[dict, str, dict]:
        """These options over ``base``, the prefix of the solve, and the names of the user's."""
        return merge(base, self.user, self.prefix, self.name, self.names)

    @property
    def told(self) -> bool:
        """Whether the user has set options of this solve."""
        return bool(self.over({})[2])


def _of_one_solve(options: Mapping, names: tuple[str, ...], own: str) -> dict:
    """The options for all solves, overridden by those under the name of this one."""
    result = (
        {k: v for k, v in options.items() if not k.startswith(names)} if names else dict(options)
    )
    if own:
        result.update({k[len(own) :]: v for k, v in options.items() if k.startswith(own)})
    return result


def refuse_unknown(
    wrote: Mapping, used: Iterable[str], known: Iterable[str], *, solved: bool = False
) -> bool:
    """Raise ``ValueError`` for the user's unknown options; True if some can be checked only after a solve."""
    # `used` are the options that PETSc has looked up, `known` further names for the hint; with
    # `solved` a solve has been done, and options that only a solve looks up are checked too.
    used = {*used, _MATRIX, COMPILED}
    later = False
    for key, where in wrote.items():
        if key in used:
            continue
        if not solved and _READ_LATER.match(key):
            later = True
            continue
        place, start = f"{_DICT}: ", ""
        if where != _DICT:
            place, start = "command line: ", where.removesuffix(key)
        near = difflib.get_close_matches(key, [*used, *known], n=1)
        hint = f"; did you mean {start + near[0]!r}?" if near else ""
        raise ValueError(f"{place}PETSc does not know the option {start + key!r}{hint}")
    return later
