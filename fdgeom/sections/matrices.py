"""The two 6×6 matrices of a cross-section: centres, axes, conventions, checks and storage.

A section's own axes are the beam's axis and the two transverse ones, right-handed, in this order;
in them a strain is (twist, two curvatures, stretch, two shears).
"""

import json
import os
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import ufl
from firedrake import COMM_WORLD, Constant, Function, FunctionSpace, TensorFunctionSpace
from ufl.core.expr import Expr

from fdgeom.files import write_text
from fdgeom.forms import is_real
from fdgeom.line import coordinates_of
from fdgeom.messages import format_value
from fdgeom.operations import Broadcast
from fdgeom.operations.dependent import MadeOnce, made_once, private, set_by
from fdgeom.operations.interpolate import sampled
from fdgeom.taping import refuse_recorded
from fdgeom.validation import Fixed, array, choice, instance, read_only

#: The word for sections in files.
FORMAT = "fdgeom section"
#: The beam's axis of each program among (x, y, z); all have forces before moments.
CONVENTIONS = {"gxbeam": 0, "vabs": 0, "anba": 2, "becas": 2, "beamdyn": 2}
# Equal to the digits of a printed table at least; and unlike, whatever was rounded.
_EXACT, _ROUGH = 1e-6, 1e-2


class Centres(NamedTuple):
    """Centres of one section, (2,), or of some, (..., 2), along the transverse axes."""

    shear: np.ndarray
    tension: np.ndarray
    mass: np.ndarray


class MatrixAlong:
    """A matrix as a function of the arc length: linear between stations, constant beyond them."""

    # A mean of symmetric positive definite matrices is symmetric positive definite, so checks at
    # the stations are enough.
    def __init__(self, stations: np.ndarray, matrices: np.ndarray) -> None:
        self.stations, self.matrices = read_only(stations), read_only(matrices)

    def __call__(self, s) -> np.ndarray:
        """The matrix at an arc length, (6, 6), or at some, (..., 6, 6)."""
        s = np.clip(np.asarray(s, dtype=float), self.stations[0], self.stations[-1])
        k = np.clip(np.searchsorted(self.stations, s) - 1, 0, len(self.stations) - 2)
        left, right = self.stations[k], self.stations[k + 1]
        part = ((s - left) / (right - left))[..., None, None]
        return (1 - part) * self.matrices[k] + part * self.matrices[k + 1]


class SectionMatrices(Fixed):
    """Base class of sections: stiffness and inertia, from numbers, drawings or stations."""

    #: Materials in UFL that numbers were made of: beams do not follow them, and refuse changes.
    made_of: tuple[MadeOnce, ...] = ()
    #: Outer radius of a round section, for contact; None for others.
    radius: float | Expr | None = None
    #: Closed curves of the shape, for pictures: coordinates along the two transverse axes and the
    #: number of the curve, (n, 3); None if the shape is not known.
    outline: np.ndarray | None = None

    # The arguments are those of `fdgeom.Section`; a matrix may be a `MatrixAlong` too.
    def __init__(self, stiffness, inertia, *, axis: int = 0) -> None:
        axis = check_axis(axis)
        self.stiffness = _matrix("stiffness", stiffness)
        self.inertia = _matrix("inertia", inertia)
        self.axis = axis
        #: The cross-section in a few words.
        self.description = f"{'constant' if self.is_constant else 'varying'} section"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description}, axis {self.axis})"

    @property
    def is_constant(self) -> bool:
        """Whether both matrices are numbers, the same all along the beam."""
        return isinstance(self.stiffness, np.ndarray) and isinstance(self.inertia, np.ndarray)

    @property
    def read_by_beams(self) -> tuple:
        """Stiffness and inertia as the forms of a beam read them: numbers or expressions."""
        return self.stiffness, self.inertia

    def check_unchanged(self) -> None:
        """Raise ``ValueError`` if the materials have changed; to be called on all ranks."""
        for once in self.made_of:
            once.refresh()

    # --- what the matrices tell --------------------------------------------------------------------
    @cached_property
    def compliance(self) -> np.ndarray:
        """Strain from stress resultants, (6, 6), body frame: the inverse of the stiffness."""
        self._need_numbers("compliance")
        return np.linalg.inv(self.stiffness)

    @property
    def _own_compliance(self) -> np.ndarray:
        """The compliance in the section's own axes: beam's axis, then the transverse two."""
        T = to_body(self.axis)
        return T.T @ self.compliance @ T

    @property
    def _centres(self) -> Centres:
        T = to_body(self.axis)
        return centres(self._own_compliance, T.T @ self.inertia @ T)

    @property
    def shear_centre(self) -> np.ndarray:
        """Shear centre, where a transverse force does not twist, along the transverse axes."""
        return self._centres.shear

    @property
    def tension_centre(self) -> np.ndarray:
        """Tension centre, where an axial force does not bend, along the transverse axes."""
        return self._centres.tension

    @property
    def mass_centre(self) -> np.ndarray:
        """Centre of mass: two coordinates along the transverse axes."""
        self._need_numbers("mass_centre")
        return self._centres.mass

    @property
    def principal_axes(self) -> np.ndarray:
        """Directions of principal bending in the body frame, rows of (2, 3), the stiffest first."""
        directions = principal_bending(self._own_compliance)[1]
        return directions @ section_axes(self.axis)[:, 1:].T

    @property
    def principal_stiffnesses(self) -> np.ndarray:
        """Bending stiffnesses about :attr:`principal_axes`, the other resultants being zero."""
        return principal_bending(self._own_compliance)[0]

    def _need_numbers(self, name: str) -> None:
        if not self.is_constant:
            raise ValueError(f"{name}: the section varies along the beam")

    # --- at a place of a beam ----------------------------------------------------------------------
    def at(self, s: float) -> "SectionMatrices":
        """The section at one place of a beam; the same object if it does not vary.

        Raises
        ------
        ValueError
            If the section is given by UFL expressions.
        """
        if self.is_constant:
            return self
        made = type(self)(*self._matrices_at("at", s), axis=self.axis)
        made.made_of = self.made_of
        return made

    def centres_at(self, s) -> Centres:
        """Shear, tension and mass centre at places of a beam.

        Parameters
        ----------
        s : float or array_like
            Arc lengths.

        Returns
        -------
        Centres
            ``shear``, ``tension`` and ``mass``: two coordinates each along the transverse axes,
            (2,) or (..., 2). They belong to the interpolated matrices: rational functions of s
            between two stations, not straight lines between the centres there.

        Raises
        ------
        ValueError
            If an arc length is not finite, or the section is given by UFL expressions.
        """
        s = array("s", s, wanted="finite arc lengths")
        stiffness, inertia = self._matrices_at("centres_at", s)
        T = to_body(self.axis)
        S = T.T @ np.linalg.inv(stiffness) @ T
        found = centres(S, T.T @ inertia @ T)
        return Centres(*(np.broadcast_to(centre, (*s.shape, 2)) for centre in found))

    def _matrices_at(self, caller: str, s) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and inertia there, (..., 6, 6); (6, 6) if they are the same everywhere."""
        if self.is_constant:
            return self.stiffness, self.inertia
        if not isinstance(self.stiffness, MatrixAlong):
            raise ValueError(
                f"{caller}: a section given by UFL expressions is known on a mesh only"
            )
        return self.stiffness(s), self.inertia(s)

    # --- for other programs ------------------------------------------------------------------------
    def to_table(self, convention: str) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and inertia in the order and axes of another program: see `fdgeom.Section.from_table`."""
        self._need_numbers("to_table")
        return tuple(
            to_convention(m, convention, self.axis) for m in (self.stiffness, self.inertia)
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write stiffness, inertia and axis as JSON, to the last digit, with all stations.

        In parallel every rank may call it; rank 0 of the world writes.
        """
        data: dict[str, Any] = {
            "format": FORMAT, "version": 1, "axis": self.axis, "order": "rotation first"
        }  # fmt: skip
        K, M = self.stiffness, self.inertia
        if self.is_constant:
            data |= {"stiffness": K.tolist(), "inertia": M.tolist()}
        elif isinstance(K, MatrixAlong):
            rows = zip(K.stations.tolist(), K.matrices, M.matrices, strict=True)
            data["stations"] = [
                {"s": s, "stiffness": k.tolist(), "inertia": m.tolist()} for s, k, m in rows
            ]
        else:
            raise ValueError("a section given by UFL expressions cannot be written as numbers")
        text = json.dumps(data, indent=1)
        write_text(path, COMM_WORLD, lambda file: file.write(text))


# --- axes, centres and conventions -------------------------------------------------------------------
def transverse(axis: int) -> tuple[int, int]:
    """The two material axes across the beam, in increasing order."""
    first, second = (k for k in range(3) if k != axis)
    return first, second


def section_axes(axis: int) -> np.ndarray:
    """P (3, 3): its columns are the section's own axes in the body frame."""
    return np.eye(3)[:, [axis, *transverse(axis)]]


def to_body(axis: int) -> np.ndarray:
    """T (6, 6) from a section's own axes to the body frame."""
    # Curvature and moment are axial vectors: they change sign where the axes are left-handed, for
    # axis=1.
    P = section_axes(axis)
    T = np.zeros((6, 6))
    T[:3, :3], T[3:, 3:] = np.linalg.det(P) * P, P
    return T


def shifted(c) -> np.ndarray:
    """X (6, 6), the strain at c from that at the reference: K about c is XᵀKX about the reference."""
    X = np.eye(6, dtype=np.result_type(float, *c))
    X[3, 1:3] = c[1], -c[0]
    X[4, 0], X[5, 0] = -c[1], c[0]
    return X


def centres(S: np.ndarray, M: np.ndarray) -> Centres:
    """All centres from compliances and inertias (..., 6, 6) in the section's own axes."""
    bending = np.linalg.solve(S[..., 1:3, 1:3], -S[..., 1:3, 3, None])[..., 0]
    return Centres(
        # Where bending twists, that is so in the cross-section where its moment vanishes.
        shear=np.stack([-S[..., 0, 5], S[..., 0, 4]], axis=-1) / S[..., 0, 0, None],
        tension=np.stack([-bending[..., 1], bending[..., 0]], axis=-1),
        mass=np.stack([-M[..., 2, 3], M[..., 1, 3]], axis=-1) / M[..., 3, 3, None],
    )


def principal_bending(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stiffnesses (2,) and directions (2, 2) of bending alone, the stiffest first."""
    compliances, vectors = np.linalg.eigh(S[1:3, 1:3])
    # Of the two senses of each, the one along an axis rather than against it.
    sense = np.sign(vectors[np.abs(vectors).argmax(axis=0), [0, 1]])
    return 1 / compliances, (vectors * sense).T


def from_convention(name: str, matrix, convention: str, axis: int) -> np.ndarray:
    """A 6×6 in fdgeom's order and axes from one in that of another program."""
    choice("convention", convention, CONVENTIONS)
    given = array(name, matrix, (6, 6))
    # The axes turn cyclically until the other program's beam axis is `axis`, so right-handed axes
    # stay right-handed.
    turn = (axis - CONVENTIONS[convention]) % 3
    # Entry k of the result's rotations is entry (k - turn) of the other's moments, and so on.
    order = [(k - turn) % 3 for k in range(3)]
    where = [3 + k for k in order] + order
    return given[np.ix_(where, where)]


def to_convention(matrix: np.ndarray, convention: str, axis: int) -> np.ndarray:
    """The inverse of :func:`from_convention`."""
    numbers = np.arange(36.0).reshape(6, 6)
    placed = from_convention("matrix", numbers, convention, axis).astype(int)
    found = np.empty(36)
    found[placed.ravel()] = np.ravel(matrix)
    return found.reshape(6, 6)


# --- checks ------------------------------------------------------------------------------------------
def check_positive_definite(name: str, matrices: np.ndarray) -> None:
    """Raise ``ValueError`` unless all matrices (..., 6, 6) are symmetric positive definite."""
    if not np.all(np.isfinite(matrices)):
        raise ValueError(f"{name} must be finite everywhere along the beam")
    transposed = np.swapaxes(matrices, -1, -2)
    # The entries have several units: each counts relative to its diagonal entries.
    size = np.sqrt(np.abs(np.diagonal(matrices, axis1=-2, axis2=-1)))
    size = np.where(size > 0, size, 1.0)
    sizes = size[..., :, None] * size[..., None, :]
    # Round-off of an assembled stiffness is a few units in the last place; 1e-10 is a wrong entry.
    if np.any(np.abs(matrices - transposed) > 1e-10 * sizes):
        raise ValueError(f"{name} must be symmetric")
    even = (matrices + transposed) / 2
    if not np.all(np.linalg.eigvalsh(even / sizes) > 0):
        least = np.linalg.eigvalsh(even).min()
        raise ValueError(
            f"{name} must be positive definite: its least eigenvalue is {least:.3g} "
            "(a negative or zero density, modulus or dimension?)"
        )


def check_inertia(name: str, matrices: np.ndarray) -> None:
    """Raise ``ValueError`` unless matrices (..., 6, 6) are positive definite, with rotation first."""
    check_positive_definite(name, matrices)
    _check_order(matrices)


def check_masses(inertia: np.ndarray, axis: int) -> None:
    """Warn of an inertia [[J, mĉ], [-mĉ, mI]] that no cross-section has."""
    _check_order(inertia)
    J, mass = inertia[:3, :3], inertia[3:, 3:]
    even = np.abs(inertia[:3, 3:] + inertia[3:, :3]).max()
    moments, polar = np.linalg.eigvalsh(J), _polar_axes(J)
    if _off_mass(mass) > _ROUGH or even > _ROUGH * np.sqrt(moments[-1] * mass[0, 0]):
        wrong = "rows and columns of translation must be m I, and m ĉ with the centre c of the mass"
    elif moments[-1] > (1 + _ROUGH) * (moments[0] + moments[1]):
        wrong = "no moment of inertia can be larger than the sum of the other two"
    elif polar and axis not in polar:
        wrong = _other_axis(polar[0], axis)
    else:
        return
    warnings.warn(f"inertia: a cross-section cannot have this one: {wrong}", stacklevel=3)


def check_table(inertia: np.ndarray, axis: int) -> None:
    """Check the inertia of a table: the beam's axis has the sum of the other two moments."""
    # ValueError if another axis satisfies that, a warning if none does.
    _check_order(inertia)
    J = inertia[:3, :3]
    if not abs(2 * J[axis, axis] - np.trace(J)) > _ROUGH * np.trace(J):
        return
    if _polar_axes(J):
        raise ValueError(
            f"inertia: {_other_axis(_polar_axes(J)[0], axis)}: choose another convention, or turn "
            "the rows and columns"
        )
    warnings.warn(
        "inertia: a table cannot have this one: the moment of inertia about the beam's axis must be the sum "
        "of the other two",
        stacklevel=3,
    )


def _check_order(inertia: np.ndarray) -> None:
    """``ValueError`` for rows in another order, detected by equalities that hold to the last digit."""
    J, mass = inertia[..., :3, :3], inertia[..., 3:, 3:]
    moved = (_off_mass(J) < _EXACT) & (_off_mass(mass) > _ROUGH)
    if any(_polar_axes(moments) for moments in np.unique(mass[moved], axis=0)):
        raise ValueError(
            "inertia: its first three rows are those of a mass, the last three those of moments of "
            "inertia; give rotation first, while tables of other programs often begin with translation"
        )


def _other_axis(found: int, axis: int) -> str:
    return (
        f"the moment of inertia about axis {found} is the sum of the other two, as of a cross-section "
        f"about the beam's axis, which is here axis {axis}"
    )


def _off_mass(blocks: np.ndarray) -> np.ndarray:
    """Deviation of blocks (..., 3, 3) from m I, relative to m."""
    mass = np.trace(blocks, axis1=-2, axis2=-1) / 3
    return np.abs(blocks - mass[..., None, None] * np.eye(3)).max(axis=(-2, -1)) / mass


def _polar_axes(J: np.ndarray) -> list[int]:
    """The axes about which the moment of inertia is the sum of the other two, none of them tiny."""
    moments = np.diag(J)
    if moments.min() < _ROUGH * moments.max():
        return []
    return [k for k in range(3) if abs(2 * moments[k] - moments.sum()) <= _EXACT * moments[k]]


def _matrix(name: str, value):
    if isinstance(value, MatrixAlong):
        check_positive_definite(name, value.matrices)
        return value
    if isinstance(value, list | tuple | np.ndarray):
        rows = np.array(value, dtype=object)
        if any(isinstance(entry, Expr) for entry in rows.flat):
            refuse_recorded(name, [entry for entry in rows.flat if not isinstance(entry, Expr)])
            value = ufl.as_tensor(rows.tolist())
    if isinstance(value, Expr):
        if value.ufl_shape != (6, 6):
            raise ValueError(f"{name} must have shape (6, 6), not {value.ufl_shape}")
        return value
    matrix = array(name, value, (6, 6), wanted="a 6×6 array of finite numbers or a UFL expression")
    check_positive_definite(name, matrix)
    return read_only((matrix + matrix.T) / 2)


def check_axis(axis) -> int:
    """``axis`` as an int; ``ValueError`` unless it is 0, 1 or 2."""
    return int(choice("axis (the material axis along the beam)", axis, range(3)))


def check_stations(stations) -> tuple[np.ndarray, list]:
    """Arc lengths and sections of (s, section) pairs, in order."""
    try:
        stations = list(stations)
        refuse_recorded("stations", [s for s, _ in stations])
        pairs = sorted(((float(s), section) for s, section in stations), key=lambda pair: pair[0])
    except (TypeError, ValueError):
        raise TypeError(
            f"stations must be pairs (s, section), not {format_value(stations)}"
        ) from None
    for s, _ in stations:
        if isinstance(s, Expr):
            raise TypeError(
                f"stations: an arc length is read once: give a number, not {format_value(s)}"
            )
    for _, section in pairs:
        hint = " for a fdgeom.Section"
        instance("stations", section, SectionMatrices, "pairs (s, section)", hint)
        if not section.is_constant:
            raise ValueError("stations: a section varies along the beam itself")
        if section.read_by_beams[0] is not section.stiffness:
            raise NotImplementedError(
                "gradients by materials of sections between stations are not available: make the drawn "
                "sections inside 'with firedrake.adjoint.stop_annotating():' (their matrices then "
                "count as given data), or give beams of one section each"
            )
    places = np.array([s for s, _ in pairs])
    if len(pairs) < 2 or not np.all(np.isfinite(places)) or np.any(np.diff(places) <= 0):
        raise ValueError("stations must be two or more, at different finite arc lengths")
    if len({section.axis for _, section in pairs}) > 1:
        raise ValueError("stations: all sections must have the same axis")
    return places, [section for _, section in pairs]


# --- in forms --------------------------------------------------------------------------------------
def body_matrix(
    name: str,
    value,
    mesh,
    element,
    of: Sequence[MadeOnce],
    *,
    inverse: bool = False,
    check: Callable[[str, np.ndarray], None] = check_positive_definite,
):
    """A 6×6 matrix (or its inverse) for use in forms: a Constant, or a field that follows the
    Functions and Constants in an expression.
    """
    # The nodes of `element`, of scalars, are the quadrature points that the matrix is needed at:
    # `check(name, matrices)` raises ValueError if it is wrong at one. Changes of the objects in `of`,
    # from which the value was made, are refused.
    if isinstance(value, np.ndarray):
        make = _constant_matrix.__wrapped__ if of else _constant_matrix
        return made_once(make(np.asarray(value, dtype=float).tobytes(), inverse), of)
    space = TensorFunctionSpace(mesh, element, shape=(6, 6))
    if isinstance(value, MatrixAlong):
        value = _at_nodes(value, space)
    elif isinstance(value, Function) and is_real(value):
        # Of a drawn section: a number of another mesh.
        value = set_by(Broadcast(value, Function(space, name=value.name())))
    field = sampled(name, value, space, check=partial(check, name), inverse=inverse, private=True)
    return made_once(field, of)


@lru_cache(maxsize=64)
def _constant_matrix(values: bytes, inverse: bool) -> Expr:
    """A constant matrix, shared by all beams that have it."""
    numbers = np.frombuffer(values).reshape(6, 6)
    numbers = np.linalg.inv(numbers) if inverse else numbers
    constant = private(Constant(numbers))
    # Zeros are left out of the forms: most sections are diagonal.
    return ufl.as_matrix(
        [[constant[i, j] if numbers[i, j] else 0.0 for j in range(6)] for i in range(6)]
    )


def _at_nodes(matrix: MatrixAlong, space) -> Function:
    """The values of a matrix that changes along the beam."""
    scalars = FunctionSpace(space.mesh(), space.ufl_element().sub_elements[0])
    field = private(Function(space))
    field.dat.data_wo_with_halos[...] = matrix(coordinates_of(scalars))
    return field
