"""PETSc's options and messages; whether options select compiled code, and solves that PETSc takes over."""

import difflib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ContextDecorator, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import petsctools
from mpi4py import MPI
from petsc4py import PETSc

from fdgeom.errors import CannotCompile, NoCompiler, SolveFailed
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
# Options that only show what PETSc SNES does.
_SHOWS = re.compile(r".*(view|reason|monitor)")
# The values that PETSc accepts for options with these endings.
_TYPES = {
    "snes_type": PETSc.SNES.Type,
    "ksp_type": PETSc.KSP.Type,
    "pc_type": PETSc.PC.Type,
    "mat_type": PETSc.Mat.Type,
    "snes_linesearch_type": PETSc.SNESLineSearch.Type,
}
# Of these options users have been warned.
_warned: set[str] = set()
# The prefixes that have been given.
_prefixes: set[str] = set()


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
    _prefixes.add(prefix)
    return petsctools.flatten_parameters(dict(solver_parameters or {})), prefix


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
        """These options over ``base``, the prefix of the solve, and where the user wrote which of them."""
        # Later ones override: the base; the user's dict; its entries under the name; the command line
        # under the prefix (not read if that is ""); the command line under prefix and name. Places are
        # "solver_parameters" or the option as on the command line.
        prefix, names = self.prefix, tuple(f"{n}_" for n in self.names if n)
        own = f"{self.name}_" if self.name else ""
        mine = _of_one_solve(self.user, names, own)
        result, wrote = {**base, **mine}, dict.fromkeys(mine, _DICT)
        if prefix:
            database = PETSc.Options()
            line = _line_of(prefix, names)
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

    @property
    def told(self) -> bool:
        """Whether the user has set options of this solve."""
        return bool(self.over({})[2])


def _line_of(prefix: str, names: tuple[str, ...] = ()) -> dict[str, str]:
    """The options on the command line of a prefix, without those of longer ones, as of arm_fine for arm."""
    # A prefix and the name of a solve are no longer prefix.
    own = {prefix, *(prefix + name for name in names)}
    longer = tuple(p for p in _prefixes if p not in own and p.startswith(prefix))
    line = PETSc.Options().getAll().items()
    return {k: v for k, v in line if k.startswith(prefix) and not k.startswith(longer)}


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
        ends = [name for name in (*used, *known) if start and key.endswith(f"_{name}")]
        if ends:
            other = where.removesuffix("_" + max(ends, key=len)).removeprefix("-")
            hint = hint or "."
            hint += f" Make the solver with options_prefix={other!r} first, if there is one"
        raise ValueError(f"{place}PETSc does not know the option {start + key!r}{hint}")
    return later


def asking_for_snes(user: Mapping, prefix: str) -> list[str]:
    """The options of a stepper that compiled steps do not support."""
    keys = list(user)
    if prefix:
        keys += _line_of(prefix)
    return [k for k in keys if not k.endswith((*TOLERANCES, COMPILED))]


@contextmanager
def falling_back(
    keep: Callable[[str], None], comm, *, required: bool, what: str, instead: str
) -> Iterator[None]:
    """Context of a compilation: passes the reason of a failure to ``keep``; raises only if ``required``."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        known = isinstance(error, CannotCompile | NoCompiler)
        why = str(error) if known else f"{type(error).__name__}: {error}"
        keep(why)
        if required:
            raise ValueError(
                f"compiled: {what} cannot be compiled: {why}; leave compiled out, and {instead}"
            ) from error
        if not isinstance(error, CannotCompile) and comm.rank == 0:
            warnings.warn(f"{instead}, and are slower: {why}", stacklevel=7)


class CompiledCode:
    """Whether solves run in compiled code, by the user's options, and those that PETSc SNES took over."""

    # argument: `compiled` of a constructor; `fdgeom_compiled` is removed from `user`. what is compiled,
    # and what is solved, for messages; instead: what happens instead.
    def __init__(
        self, user: dict, prefix: str, argument: bool | None, comm: MPI.Comm, *, what: str,
        solve: str, instead: str,
    ) -> None:  # fmt: skip
        if argument is not None:
            instance("compiled", argument, bool, "True, False or None")
        choice, database = argument, PETSc.Options()
        if COMPILED in user:
            choice = str(user.pop(COMPILED)).lower() not in ("0", "false", "no", "off")
        if prefix and database.hasName(prefix + COMPILED):
            choice = database.getBool(prefix + COMPILED)
        asked = asking_for_snes(user, prefix)
        name = f"the option {asked[0]!r}" if asked else "compiled=False"
        self._asked = f"{name} asks for PETSc SNES"
        wanted = not asked if choice is None else choice
        # Whether options that show iterations are the only reason for PETSc SNES.
        self._shows = choice is None and bool(asked) and all(map(_SHOWS.match, asked))
        #: Why the solves go through PETSc SNES; None if compiled code is to do them.
        self.why_not = None if wanted or self._shows else self._asked
        #: The compiled code; None if there is none.
        self.made: Any = None
        self._comm = comm
        self._how = {"required": bool(argument), "what": what, "instead": instead}
        self.fallbacks = Fallbacks(comm, solve, required=bool(argument))

    @contextmanager
    def making(self) -> Iterator[None]:
        """Context of a compilation, whose failure is the reason for PETSc SNES."""
        with falling_back(self.give_up, self._comm, **self._how):
            yield
        if self._shows and self.why_not is None:
            self.give_up(self._asked)
            if self._comm.rank == 0 and self._asked not in _warned:
                _warned.add(self._asked)
                warnings.warn(
                    f"{self._asked}, which takes longer than compiled code; this warning appears once",
                    stacklevel=5,
                )

    def give_up(self, why: str) -> None:
        """Leave the solves to PETSc SNES, for a reason."""
        self.why_not, self.made = why, None


class Compiled:
    """The part of a class that tells its users what runs in compiled code."""

    _code: CompiledCode

    @property
    def is_compiled(self) -> bool:
        """Whether the solves run in compiled code."""
        return self.why_not_compiled is None

    @property
    def why_not_compiled(self) -> str | None:
        """The reason why they go through PETSc SNES, in a sentence; None if they are compiled."""
        return self._code.why_not

    @property
    def fallbacks(self) -> dict[str, int]:
        """Number of solves through PETSc SNES after a failure of compiled code, by reason."""
        return dict(self._code.fallbacks)


class Fallbacks(dict):
    """Maps each reason to the number of solves that PETSc SNES took over; warns at the first of them."""

    def __init__(self, comm: MPI.Comm, what: str, *, required: bool) -> None:
        super().__init__()
        self._comm, self._what, self._required = comm, what, required

    @contextmanager
    def through_petsc(self, why: str, failure: SolveFailed | None = None) -> Iterator[None]:
        """Context for such a solve; raises ``SolveFailed`` instead if compiled code is required."""
        if self._required:
            text = f"the compiled solve stopped with {why}" if failure is None else failure
            raise SolveFailed(
                f"{text}, and compiled=True excludes PETSc SNES: leave compiled out, so that SNES tries",
                remedy=failure and failure.remedy,
            )
        yield
        is_first = not self
        self[why] = self.get(why, 0) + 1
        if is_first and self._comm.rank == 0:
            warnings.warn(
                f"{self._what} went through PETSc SNES, which takes longer: the compiled solve "
                f"stopped with {why}. This warning appears once; fallbacks and "
                "solver_stats() count such solves",
                stacklevel=7,
            )


def reason(error: Exception) -> str:
    """The reason of a PETSc error: the last line of its text."""
    line = (str(error).strip().splitlines() or [""])[-1]
    return re.sub(r"^\[\d+\]\s*", "", line).rstrip(".")


@contextmanager
def refusing(options: Mapping) -> Iterator[None]:
    """Context that turns PETSc's error about one of these options into a ``ValueError`` that names it."""
    try:
        yield
    except (PETSc.Error, ValueError) as error:
        why = reason(error)
        words = set(re.findall(r"[^\s',]+", why))
        named = [(k, v) for k, v in options.items() if str(v) in words]
        if not named:
            if isinstance(error, ValueError):
                raise  # of what the options are not the cause, such as fields that have changed
            raise ValueError(f"solver_parameters: PETSc refuses them: {why}") from error
        key, value = named[-1]
        raise ValueError(
            f"solver_parameters: {key!r} cannot be {value!r}{_hint(key, value)} (PETSc: {why})"
        ) from error


def _hint(key: str, value) -> str:
    kind = next((types for end, types in _TYPES.items() if key.endswith(end)), None)
    names = [v for k, v in vars(kind).items() if k.isupper()] if kind else []
    near = difflib.get_close_matches(str(value), names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


_REASONS = {
    value: name
    for name, value in vars(PETSc.SNES.ConvergedReason).items()
    if isinstance(value, int) and "VERGED_" in name
}


def divergence(reason: int) -> str | int:
    """PETSc's name of a divergence reason of a SNES."""
    return _REASONS.get(reason, reason)


_REASON = "snes_converged_reason"


def set_from_options(snes: PETSc.SNES, options: Mapping, prefix: str, default: str) -> bool:
    """Set up a SNES; True if ``-snes_converged_reason`` is left to :func:`show_reason`."""
    # PETSc shows every attempt, also one that fails and is repeated in a healthy run.
    with refusing(options):
        petsctools.attach_options(
            snes, options, options_prefix=prefix or None, default_prefix=default
        )
        manager = petsctools.get_options(snes)
        given = manager.parameters.get(_REASON, False)
        shows = given is None or given in ("", True, "True", "true", "1")
        if shows:
            manager.parameters[_REASON] = ":/dev/null"
        petsctools.set_from_options(snes)
    if shows:
        manager.parameters[_REASON] = given
        with manager.inserted_options():
            pass  # puts the user's own option back where the command line has it
    return shows


def show_reason(snes: PETSc.SNES) -> None:
    """Print how a solve ended, as PETSc does."""
    reason = snes.getConvergedReason()
    ended = "converged" if reason > 0 else "did not converge"
    PETSc.Viewer.STDOUT(snes.comm).printfASCII(
        f"  Nonlinear {snes.getOptionsPrefix()} solve {ended} due to {divergence(reason)} "
        f"iterations {snes.getIterationNumber()}\n"
    )


class Logged(ContextDecorator):
    """Context, or decorator, of work that ``-log_view`` shows as a stage and as an event."""

    def __init__(self, work: str) -> None:
        self._name = f"fdgeom: {work}"
        #: Whether PETSc logs, for each context that is open.
        self._open: list[bool] = []

    @cached_property
    def _log(self) -> tuple[PETSc.Log.Stage, PETSc.Log.Event]:
        return PETSc.Log.Stage(self._name), PETSc.Log.Event(self._name)

    def __enter__(self) -> None:
        self._open.append(PETSc.Log.isActive())
        if self._open[-1]:
            stage, event = self._log
            stage.push()
            event.begin()

    def __exit__(self, *error) -> None:
        if self._open.pop():
            stage, event = self._log
            event.end()
            stage.pop()


#: What ``-log_view`` shows of fdgeom.
COMPILED_STEPS, SNES_STEPS = Logged("compiled steps"), Logged("SNES steps")
STATICS, REVERSE_SWEEP, OUTPUT = Logged("statics"), Logged("reverse sweep"), Logged("output")
