"""The same scheme in NumPy, all nodes and all cells at once."""

from __future__ import annotations

from functools import cache

import numpy as np
from case import END_WEIGHT, FIELDS, INERTIA, LENGTH, STIFFNESS, TANGENT, State, start, step

TOLERANCE, MOST_ITERATIONS = 1e-12, 25


def hat(a: np.ndarray) -> np.ndarray:
    """Matrices of a×· for vectors (n, 3): shape (n, 3, 3)."""
    out = np.zeros((*a.shape, 3))
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -a[:, 2], a[:, 1], -a[:, 0]
    out[:, 1, 0], out[:, 2, 0], out[:, 2, 1] = a[:, 2], -a[:, 1], a[:, 0]
    return out


def bracket(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[(ω₁,v₁), (ω₂,v₂)] = (ω₁×ω₂, ω₁×v₂ - ω₂×v₁)."""
    w, v = a[..., :3], a[..., 3:]
    return np.concatenate(
        [np.cross(w, b[..., :3]), np.cross(w, b[..., 3:]) - np.cross(b[..., :3], v)], axis=-1
    )


def coadjoint(a: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """[(ω,v), (m,n)]* = (m×ω + n×v, n×ω)."""
    (w, v), (m, n) = (a[..., :3], a[..., 3:]), (mu[..., :3], mu[..., 3:])
    return np.concatenate([np.cross(m, w) + np.cross(n, v), np.cross(n, w)], axis=-1)


def coadjoint_matrix(mu: np.ndarray) -> np.ndarray:
    """Matrices of ζ ↦ [ζ, μ]*: shape (n, 6, 6)."""
    out = np.zeros((len(mu), 6, 6))
    out[:, :3, :3] = hat(mu[:, :3])
    out[:, :3, 3:] = out[:, 3:, :3] = hat(mu[:, 3:])
    return out


def coadjoint_transposed(zeta: np.ndarray) -> np.ndarray:
    """Matrices of μ ↦ [ζ, μ]*: shape (n, 6, 6)."""
    out = np.zeros((len(zeta), 6, 6))
    out[:, :3, :3] = out[:, 3:, 3:] = -hat(zeta[:, :3])
    out[:, :3, 3:] = -hat(zeta[:, 3:])
    return out


class NumpyBeam:
    """The paper's run by vectorised NumPy."""

    def __init__(self, cells: int) -> None:
        self._dt, self._h = step(cells), LENGTH / cells
        self._state = start(cells)
        self._weight = np.full((cells + 1, 1), self._h)
        self._weight[[0, -1]] *= END_WEIGHT

    def restart(self, state: State) -> None:
        self._state = State(**{name: getattr(state, name).copy() for name in FIELDS})

    def state(self) -> State:
        return self._state

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            old = self._state.momentum / INERTIA
            self._step_momentum(old)
            self._step_strain()
            self._move(self._dt * old)

    def _force(self) -> np.ndarray:
        strain = self._state.strain
        stress = STIFFNESS * strain
        couple = -0.5 * self._h * coadjoint(strain + TANGENT, stress)
        force = np.zeros_like(self._state.momentum)
        force[:-1] += stress + couple
        force[1:] += couple - stress
        return force / self._weight

    def _step_momentum(self, old: np.ndarray) -> None:
        """(53): the mean velocity z from D₁z - μ⁰ - Δt/2 (force + [z, D₁z]*) = 0.

        Newton until each residual is 1e-12 of the momentum in the norm of the kinetic energy.
        """
        mu0, half = self._state.momentum, 0.5 * self._dt
        known, z, scale = mu0 + half * self._force(), old.copy(), None
        for _ in range(MOST_ITERATIONS + 1):
            mu = INERTIA * z
            residual = mu - known - half * coadjoint(z, mu)
            norm = np.einsum("ij,ij->i", residual, residual / INERTIA)
            if scale is None:
                scale = np.einsum("ij,ij->i", mu0, old) + norm
            if np.all(norm <= TOLERANCE**2 * scale):
                self._state.momentum = 2 * mu - mu0
                return
            matrix = coadjoint_transposed(z) * INERTIA + coadjoint_matrix(mu)
            z -= np.linalg.solve(np.diag(INERTIA) - half * matrix, residual[..., None])[..., 0]
        raise RuntimeError("the program in NumPy: Newton's method did not converge")

    def _step_strain(self) -> None:
        """(54): the mean strain g from g - Δt/2 [g, z] = γ⁰ + Δt/2 (z' + [e, z])."""
        half, velocity = 0.5 * self._dt, self._state.momentum / INERTIA
        z, slope = 0.5 * (velocity[1:] + velocity[:-1]), np.diff(velocity, axis=0) / self._h
        matrix = np.zeros((len(z), 6, 6))
        matrix[:, :3, :3] = matrix[:, 3:, 3:] = half * hat(z[:, :3])
        matrix[:, 3:, :3] = half * hat(z[:, 3:])
        matrix += np.eye(6)
        known = self._state.strain + half * (slope + bracket(TANGENT, z))
        mean = np.linalg.solve(matrix, known[..., None])[..., 0]
        self._state.strain = 2 * mean - self._state.strain

    def _move(self, xi: np.ndarray) -> None:
        """(55): g := g cay(ξ)."""
        w, v, q = xi[:, :3], xi[:, 3:], self._state.orientation
        along = 0.25 * np.einsum("ij,ij->i", w, v)[:, None]
        size = 1 + 0.25 * np.einsum("ij,ij->i", w, w)[:, None]
        p = (v + along * w + 0.5 * np.cross(w, v)) / size
        scalar, u = q[:, :1], q[:, 1:]
        self._state.position = (
            self._state.position + p + 2 * np.cross(u, np.cross(u, p) + scalar * p)
        )
        turned = np.concatenate(
            [
                scalar - 0.5 * np.einsum("ij,ij->i", u, w)[:, None],
                u + 0.5 * (scalar * w + np.cross(u, w)),
            ],
            axis=1,
        )
        self._state.orientation = turned / np.linalg.norm(turned, axis=1, keepdims=True)


@cache
def _thousand_steps() -> State:
    beam = NumpyBeam(100)
    beam.advance(1000)
    return beam.state()


def developed(cells: int) -> State:
    """The state after 1000 steps at 100 cells, brought to other numbers of cells by interpolation.

    At the start forces and curvature are in balance and there is nothing to solve for in most cells.
    """
    coarse, out = _thousand_steps(), {}
    for name in FIELDS:
        values, shift = getattr(coarse, name), 0.5 if name == "strain" else 0.0
        new = (np.arange(cells + (not shift)) + shift) / cells
        old = (np.arange(len(values)) + shift) / 100
        out[name] = np.stack([np.interp(new, old, column) for column in values.T], axis=1)
    out["orientation"] /= np.linalg.norm(out["orientation"], axis=1, keepdims=True)
    return State(**out)
