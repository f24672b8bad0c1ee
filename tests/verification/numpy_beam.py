"""The beam of degree 1 in plain NumPy: an independent program to compare with.

Nothing here comes from the package. Poses are 4×4 matrices, Newton's Jacobians are written out by
hand, and the finite differences are those of the paper's equations (50)-(55), a row for each node.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp


def cross_matrix(a):
    """â with âb = a × b, shape (..., 3, 3)."""
    out = np.zeros((*a.shape[:-1], 3, 3))
    out[..., 0, 1], out[..., 0, 2] = -a[..., 2], a[..., 1]
    out[..., 1, 0], out[..., 1, 2] = a[..., 2], -a[..., 0]
    out[..., 2, 0], out[..., 2, 1] = -a[..., 1], a[..., 0]
    return out


def ad(xi):
    """The matrix of η ↦ [ξ, η] = (ω×ω', ω×v' - ω'×v)."""
    out = np.zeros((*xi.shape[:-1], 6, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = cross_matrix(xi[..., :3])
    out[..., 3:, :3] = cross_matrix(xi[..., 3:])
    return out


def apply(matrices, vectors):
    return np.einsum("...ij,...j->...i", matrices, vectors)


def dual(xi, mu):
    """[ξ, μ]* = (m×ω + n×v, n×ω)."""
    w, v, m, n = xi[..., :3], xi[..., 3:], mu[..., :3], mu[..., 3:]
    return np.concatenate([np.cross(m, w) + np.cross(n, v), np.cross(n, w)], axis=-1)


def dual_in_second(mu):
    """The matrix of ξ ↦ [ξ, μ]*."""
    out = np.zeros((*mu.shape[:-1], 6, 6))
    out[..., :3, :3] = cross_matrix(mu[..., :3])
    out[..., :3, 3:] = out[..., 3:, :3] = cross_matrix(mu[..., 3:])
    return out


def hat(xi):
    """The 4×4 matrix of ξ."""
    out = np.zeros((*xi.shape[:-1], 4, 4))
    out[..., :3, :3] = cross_matrix(xi[..., :3])
    out[..., :3, 3] = xi[..., 3:]
    return out


def cay(xi):
    """(I - ξ̂/2)⁻¹ (I + ξ̂/2)."""
    half = 0.5 * hat(xi)
    return np.linalg.solve(np.eye(4) - half, np.eye(4) + half)


def rotation(q):
    """Rotation matrices of unit quaternions (scalar first)."""
    a, u = q[..., 0, None, None], q[..., 1:]
    hat_u = cross_matrix(u)
    return np.eye(3) + 2 * a * hat_u + 2 * hat_u @ hat_u


class NumpyBeam:
    """State and steps of a beam of degree 1.

    Parameters
    ----------
    nodes : (n+1,) array
        Arc length of the nodes.
    stiffness, inertia : (6, 6), or (n, 6, 6) and (n+1, 6, 6)
        D₂ in the cells, D₁ at the nodes.
    axis : int
        Material axis along the beam.
    end_weight : float
        Weight of an end node in cells.
    held_left : sequence of int
        Components of the velocity of the left end that are given: ``given_left``, zero at first.
    """

    def __init__(self, nodes, stiffness, inertia, axis=0, end_weight=0.5, held_left=()):
        self.nodes, self.h = np.asarray(nodes), np.diff(nodes)
        n = len(self.h)
        self.D2 = np.broadcast_to(stiffness, (n, 6, 6))
        self.D1 = np.broadcast_to(inertia, (n + 1, 6, 6))
        self.inverse = np.linalg.inv(self.D1)
        self.e = np.eye(6)[3 + axis]
        self.weights = np.zeros(n + 1)
        self.weights[:-1] += self.h / 2
        self.weights[1:] += self.h / 2
        self.weights[0] = end_weight * self.h[0]
        self.weights[-1] = end_weight * self.h[-1]
        self.held = list(held_left)
        self.given_left = np.zeros(6)
        self.strain = np.zeros((n, 6))
        self.momentum = np.zeros((n + 1, 6))
        self.pose = np.tile(np.eye(4), (n + 1, 1, 1))

    def reconstruct(self):
        """g_{j+1} = g_j cay(Δs (γ+e))."""
        self.pose[0] = np.eye(4)
        for j, step in enumerate(cay(self.h[:, None] * (self.strain + self.e))):
            self.pose[j + 1] = self.pose[j] @ step

    # --- right-hand sides ------------------------------------------------------------------------
    def velocity(self, momentum):
        return apply(self.inverse, momentum)

    def force(self, strain):
        """(D₂γ)' - [γ+e, D₂γ]* at each node."""
        b = apply(self.D2, strain)
        turned = 0.5 * self.h[:, None] * dual(strain + self.e, b)
        out = np.zeros((len(self.nodes), 6))
        out[:-1] += b - turned
        out[1:] += -b - turned
        return out / self.weights[:, None]

    def strain_rate(self, strain, velocity):
        mean = 0.5 * (velocity[1:] + velocity[:-1])
        return (velocity[1:] - velocity[:-1]) / self.h[:, None] + apply(ad(strain + self.e), mean)

    def rates(self, strain, momentum, pose):
        """Time derivatives of the semi-discrete beam (free ends)."""
        velocity = self.velocity(momentum)
        return (
            self.strain_rate(strain, velocity),
            self.force(strain) + dual(velocity, momentum),
            pose @ hat(velocity),
        )

    def solution(self, end, rates=None):
        """Strain, momentum, position and rotation at a time, by DOP853 on the semi-discrete beam.

        ``rates(t, strain, momentum, pose)`` are its time derivatives, of a free beam by default.
        """
        rates = rates or (lambda t, *state: self.rates(*state))
        start = (self.strain, self.momentum, self.pose)
        cuts = np.cumsum([a.size for a in start])[:-1]

        def unpack(y):
            return [a.reshape(b.shape) for a, b in zip(np.split(y, cuts), start, strict=True)]

        def slope(t, y):
            return np.concatenate([a.ravel() for a in rates(t, *unpack(y))])

        y = np.concatenate([a.ravel() for a in start])
        run = solve_ivp(slope, (0, end), y, "DOP853", rtol=1e-13, atol=1e-14)
        strain, momentum, pose = unpack(run.y[:, -1])
        return strain, momentum, pose[:, :3, 3], pose[:, :3, :3]

    # --- steps -----------------------------------------------------------------------------------
    def step(self, dt, method="poisson", configuration="old"):
        """One step of the Poisson or the Hamel field integrator."""
        self.move_momentum(dt, method, configuration)
        self.move_strain(dt)

    def symmetric_step(self, dt, configuration="mean"):
        """Half a step of the strain, a step of the momentum, half a step of the strain."""
        self.move_strain(dt / 2)
        self.move_momentum(dt, "poisson", configuration)
        self.move_strain(dt / 2)

    def composed_step(self, dt, weights):
        """Symmetric steps for fractions of the time, one after another."""
        for weight in weights:
            self.symmetric_step(weight * dt)

    def midpoint_step(self, dt):
        """Implicit midpoint rule for everything at once, by fixed-point iteration (free ends)."""
        strain, momentum = self.strain, self.momentum
        for _ in range(200):
            velocity = self.velocity(momentum)
            last = strain, momentum
            strain = self.strain + dt / 2 * self.strain_rate(last[0], velocity)
            momentum = self.momentum + dt / 2 * (self.force(last[0]) + dual(velocity, last[1]))
            change = max(np.abs(strain - last[0]).max(), np.abs(momentum - last[1]).max())
            # A few units of round-off of the largest entry: it will not fall further.
            if change <= 4e-16 * max(np.abs(strain).max(), np.abs(momentum).max()):
                break
        else:
            raise RuntimeError("the fixed-point iteration does not converge: dt is too large")
        self.strain, self.momentum = 2 * strain - self.strain, 2 * momentum - self.momentum
        self.pose = self.pose @ cay(dt * self.velocity(momentum))

    def move_strain(self, dt):
        """The strain with the velocity held: linear in γ¹, so (54) and the mean of two flows agree."""
        velocity = self.velocity(self.momentum)
        mean = 0.5 * (velocity[1:] + velocity[:-1])
        difference = (velocity[1:] - velocity[:-1]) / self.h[:, None]
        A = 0.5 * dt * ad(mean)
        right = self.strain + dt * (difference - apply(ad(mean), self.e)) - apply(A, self.strain)
        self.strain = np.linalg.solve(np.eye(6) + A, right[..., None])[..., 0]

    def move_momentum(self, dt, method="poisson", configuration="old"):
        """The momentum with the strain held, and the poses by (55)."""
        old, self.momentum = self.momentum, self._new_momentum(dt, method)
        before, velocity = self.velocity(old), self.velocity(self.momentum)
        used = {"old": before, "new": velocity, "mean": 0.5 * (before + velocity)}[configuration]
        self.pose = self.pose @ cay(dt * used)

    def _new_momentum(self, dt, method):
        old, force = self.momentum, self.force(self.strain)
        new = old.copy()
        before = self.velocity(old)
        for _ in range(20):
            if method == "poisson":
                m = 0.5 * (old + new)
                z = self.velocity(m)
                flow, slope = dual(z, m), 0.5 * self._slope(z, m)
            else:
                z = self.velocity(new)
                flow = 0.5 * (dual(z, new) + dual(before, old))
                slope = 0.5 * self._slope(z, new)
            residual = new - old - dt * (force + flow)
            jacobian = np.eye(6) - dt * slope
            if self.held:
                # Held components of the velocity: equations for ζ, those rows replaced by ζ = 0.
                jacobian[0] = jacobian[0] @ self.D1[0]
                jacobian[0, self.held] = np.eye(6)[self.held]
                off = self.velocity(new)[0] - self.given_left
                residual[0, self.held] = off[self.held]
            change = np.linalg.solve(jacobian, residual[..., None])[..., 0]
            if self.held:
                change[0] = self.D1[0] @ change[0]
            new = new - change
            if np.abs(change).max() <= 1e-15 * np.abs(new).max():
                return new
        return new

    def _slope(self, z, m):
        """Derivative of [D₁⁻¹μ, μ]* with respect to μ; [ξ, ·]* is minus the transpose of... ad."""
        return dual_in_second(m) @ self.inverse + np.swapaxes(ad(z), -1, -2)

    # --- numbers ---------------------------------------------------------------------------------
    def kinetic_energy(self):
        density = 0.5 * np.einsum("ni,ni->n", self.momentum, self.velocity(self.momentum))
        return float(self.weights @ density)

    def potential_energy(self):
        density = 0.5 * np.einsum("ni,nij,nj->n", self.strain, self.D2, self.strain)
        return float(self.h @ density)

    def energy(self):
        return self.kinetic_energy() + self.potential_energy()

    def linear_momentum(self):
        return self.weights @ apply(self.pose[:, :3, :3], self.momentum[:, 3:])

    def angular_momentum(self):
        R, x = self.pose[:, :3, :3], self.pose[:, :3, 3]
        n = apply(R, self.momentum[:, 3:])
        return self.weights @ (apply(R, self.momentum[:, :3]) + np.cross(x, n))

    def derivative_of_bracket(self, f, g):
        """δ{f, g}/δz for linear functionals f and g: the bracket is linear in the state."""
        (a, alpha), (b, beta) = f, g
        turn = [np.swapaxes(ad(0.5 * (x[1:] + x[:-1])), 1, 2) for x in (alpha, beta)]
        return apply(turn[0], b) - apply(turn[1], a), apply(ad(beta), alpha)

    def jacobi(self, functionals):
        """The three terms {{f, g}, k} whose sum is zero for a Poisson bracket."""
        f, g, k = functionals
        return [
            self.bracket(self.derivative_of_bracket(x, y), z)
            for x, y, z in ((f, g, k), (g, k, f), (k, f, g))
        ]

    def bracket(self, f, g):
        """The paper's {f, g}, (50), for δf/δz = f = (a, α), δg/δz = g = (b, β): arrays."""
        (a, alpha), (b, beta) = f, g
        total = 0.0
        for j, h in enumerate(self.h):
            frame = ad(self.strain[j] + self.e)
            d_beta = (beta[j + 1] - beta[j]) / h + frame @ (beta[j + 1] + beta[j]) / 2
            d_alpha = (alpha[j + 1] - alpha[j]) / h + frame @ (alpha[j + 1] + alpha[j]) / 2
            total += h * (a[j] @ d_beta - b[j] @ d_alpha)
        for j, w in enumerate(self.weights):
            total += w * self.momentum[j] @ (ad(beta[j]) @ alpha[j])
        return total
