"""One-step methods for rods in NumPy, with rotation matrices: written apart from fdgeom's forms.

Poses are arrays x (n, 3) and R (n, 3, 3); velocities (n, 6) in the body frame, rotation first.
"""

from __future__ import annotations

import numpy as np


def hat(w):
    z = np.zeros_like(w[..., 0])
    rows = [[z, -w[..., 2], w[..., 1]], [w[..., 2], z, -w[..., 0]], [-w[..., 1], w[..., 0], z]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def vee(S):
    return np.stack([S[..., 2, 1] - S[..., 1, 2], S[..., 0, 2] - S[..., 2, 0],
                     S[..., 1, 0] - S[..., 0, 1]], axis=-1) / 2  # fmt: skip


def cay(w):
    half = hat(w) / 2
    return np.linalg.solve(np.eye(3) - half, np.eye(3) + half)


def hat4(d):
    X = np.zeros((*d.shape[:-1], 4, 4), dtype=d.dtype)
    X[..., :3, :3], X[..., :3, 3] = hat(d[..., :3]), d[..., 3:]
    return X


def cay4(d):
    half = hat4(d) / 2
    return np.linalg.solve(np.eye(4) - half, np.eye(4) + half)


def rotation(q):
    """Rotation matrices of unit quaternions."""
    w, u = q[..., 0], q[..., 1:]
    square = np.einsum("...i,...j->...ij", u, u) - np.sum(u * u, -1)[..., None, None] * np.eye(3)
    return np.eye(3) + 2 * w[..., None, None] * hat(u) + 2 * square


def jacobian(f, z):
    """By complex steps: to round-off."""
    columns = [f(z + 1e-30j * e).imag / 1e-30 for e in np.eye(z.size)]
    return np.array(columns).T


def newton(f, z, iterations=30):
    for _ in range(iterations if z.size else 0):
        step = np.linalg.solve(jacobian(f, z), f(z.astype(complex)).real)
        z = z - step
        if np.abs(step).max() <= 1e-15 * max(np.abs(z).max(), 1):
            break
    return z


class NumpyRod:
    """A rod of two-node cells.

    Parameters
    ----------
    nodes : array (n,)
        Arc length of the nodes.
    stiffness, inertia : array (6, 6)
        Of the section.
    axis : int
        Along the rod.
    reference : array (n - 1, 6), optional
        Strain at rest.
    held : array (n, 6) of bool, optional
        What is held of (rotation, translation) of each node.
    gravity : array (3,), optional
    force : array (3,), optional
        A dead force on the last node.
    """

    def __init__(self, nodes, stiffness, inertia, *, axis=0, reference=0.0, held=None,
                 gravity=None, force=None):  # fmt: skip
        self.h = np.diff(nodes)
        self.weights = (np.append(self.h, 0) + np.append(0, self.h)) / 2
        self.C, self.M = stiffness, inertia
        self.rest = np.eye(6)[3 + axis] + reference
        self.n = len(nodes)
        self.free = ~(np.zeros((self.n, 6), dtype=bool) if held is None else held)
        self.gravity = np.zeros(3) if gravity is None else np.asarray(gravity)
        self.force = np.zeros(3) if force is None else np.asarray(force)

    # --- the energy–momentum method -------------------------------------------------------------
    def director_strain(self, x, R):
        P, Q, h = R[:-1], R[1:], self.h[:, None]
        PQ = np.einsum("nki,nkj->nij", P, Q)
        tangent = np.einsum("nki,nk->ni", (P + Q) / 2, np.diff(x, axis=0)) / h
        return (
            np.concatenate([vee(PQ - np.swapaxes(PQ, 1, 2)) / 2 / h, tangent], axis=1) - self.rest
        )

    def energy_momentum_step(self, x, R, V, dt):
        """One step; the unknown is (spatial Cayley vector, translation) of all nodes."""
        separate = not self.M[:3, 3:].any() and np.allclose(
            self.M[3:, 3:], self.M[3, 3] * np.eye(3)
        )

        def end(z):
            D = np.zeros((self.n, 6), dtype=complex)
            D[self.free] = z
            w, shift = D[:, :3], D[:, 3:]
            x1, R1 = x + shift, cay(w) @ R
            if separate:
                spin = np.einsum("nki,nk->ni", R, w)
                v1 = 2 * shift / dt - np.einsum("nij,nj->ni", R, V[:, 3:])
                V1 = np.concatenate(
                    [2 * spin / dt - V[:, :3], np.einsum("nji,nj->ni", R1, v1)], axis=1
                )
            else:
                g0, g1 = pose(x.astype(complex), R), pose(x1, R1)
                relative = np.linalg.solve(g0, g1)
                X = 2 * (relative - np.eye(4)) @ np.linalg.inv(relative + np.eye(4))
                V1 = 2 * np.concatenate([vee(X[:, :3, :3]), X[:, :3, 3]], axis=1) / dt - V
            return x1, R1, V1

        def residual(z):
            x1, R1, V1 = end(z)
            xm, Rm = (x + x1) / 2, (R + R1) / 2
            stress = (self.director_strain(x, R) + self.director_strain(x1, R1)) / 2 @ self.C
            mu0, mu1 = V @ self.M, V1 @ self.M
            p0, p1 = (np.einsum("nij,nj->ni", r, m[:, 3:]) for r, m in ((R, mu0), (R1, mu1)))
            l0, l1 = (np.einsum("nij,nj->ni", r, m[:, :3]) for r, m in ((R, mu0), (R1, mu1)))
            # Momenta about the origin; the moment of a node's force is that at its mean position.
            out = np.zeros((self.n, 6), dtype=complex)
            push = self.weights[:, None] * (p1 - p0 - dt * self.M[3, 3] * self.gravity)
            push[-1] -= dt * self.force
            turn = self.weights[:, None] * (l1 - l0 + np.cross(x1, p1) - np.cross(x, p0)
                                            - np.cross(xm, p1 - p0))  # fmt: skip
            offset = np.array([self.M[4, 2], self.M[5, 0], self.M[3, 1]])
            turn -= dt * self.weights[:, None] * np.cross(Rm @ offset, self.gravity)
            for k in range(6):
                # The strain is quadratic: half a central difference is its derivative.
                unit = np.eye(6)[k]
                for i in range(self.n):
                    dx, dR = np.zeros_like(xm), np.zeros_like(Rm)
                    dx[i], dR[i] = unit[3:], hat(unit[:3]) @ Rm[i]
                    d = self.director_strain(xm + dx, Rm + dR)
                    d = (d - self.director_strain(xm - dx, Rm - dR)) / 2
                    out[i, k] = dt * np.sum(self.h[:, None] * stress * d)
            out[:, :3] += turn
            out[:, 3:] += push
            return out[self.free]

        return tuple(a.real for a in end(newton(residual, np.zeros(self.free.sum()))))

    # --- the variational integrator -----------------------------------------------------------------
    def logarithmic_strain(self, x, R):
        """Curvature from the rotation vector between two nodes, tangent from the middle rotation."""
        relative = np.einsum("nki,nkj->nij", R[:-1], R[1:])
        sine = vee(relative)
        size = np.sqrt(np.sum(sine**2, axis=1))
        angle = np.arctan2(size.real, (np.trace(relative.real, axis1=1, axis2=2) - 1) / 2)
        if np.iscomplexobj(size):
            cosine = (np.trace(relative, axis1=1, axis2=2) - 1) / 2
            angle = angle + 1j * (cosine * size.imag - size * cosine.imag).real
        w = sine * (angle / size)[:, None]
        # exp(w/2) = cay of a vector along w with |.| = 2 tan(θ/4)
        half = cay(w * (2 * np.tan(angle / 4) / angle)[:, None])
        middle = R[:-1] @ half
        tangent = np.einsum("nki,nk->ni", middle, np.diff(x, axis=0))
        return np.concatenate([w, tangent], axis=1) / self.h[:, None] - self.rest

    def potential(self, x, R):
        strain = self.logarithmic_strain(x, R)
        elastic = 0.5 * np.sum(self.h[:, None] * strain * (strain @ self.C))
        load = np.sum(self.weights[:, None] * self.M[3, 3] * x * self.gravity) + x[-1] @ self.force
        return elastic - load

    def forces(self, x, R, separate):
        """-dV/dg (n, 6): rotation in the body frame, translation in space or in the body frame."""
        out = np.zeros((self.n, 6))
        for i in range(self.n):
            for k in range(6):
                step = 1e-30j * np.eye(6)[k]
                dx, dR = x.astype(complex), R.astype(complex)
                dx[i] = x[i] + (step[3:] if separate else R[i] @ step[3:])
                dR[i] = R[i] @ (np.eye(3) + hat(step[:3]))
                out[i, k] = -self.potential(dx, dR).imag / 1e-30
        return out / self.weights[:, None]

    def variational_step(self, x, R, V, dt):
        """Discrete Hamilton's principle: p⁰ = -∂L_d/∂g⁰, p¹ = ∂L_d/∂g¹, for free variations alone.

        L_d = D·M D/(2Δt) - Δt (V(g⁰) + V(g¹))/2 with D = cay⁻¹(g⁰⁻¹g¹), whose held components are
        zero as those of the variations are. At the nodes p = ∂(½v·M v)/∂v along free velocities, so
        M_ff v_f = p_f: what M_hf v_f is belongs to the reaction.
        """
        separate = not self.M[:3, 3:].any() and np.allclose(
            self.M[3:, 3:], self.M[3, 3] * np.eye(3)
        )
        V = V.copy()
        if separate:
            V[:, 3:] = np.einsum("nij,nj->ni", R, V[:, 3:])
        start = V @ self.M + dt / 2 * self.forces(x, R, separate)
        x1, R1, end = x.copy(), R.copy(), np.zeros_like(start)
        for i in range(self.n):
            free = self.free[i]

            def increment(z, free=free):
                D = np.zeros(6, dtype=complex)
                D[free] = z
                return D

            def gap(z, i=i, free=free):
                D = increment(z)
                return ((self.M @ D) @ slopes(D, separate)[0] / dt + start[i])[free]

            D = increment(newton(gap, np.zeros(free.sum())))
            end[i] = ((self.M @ D) @ slopes(D, separate)[1] / dt).real
            D = D.real
            if separate:
                x1[i], R1[i] = x[i] + D[3:], R[i] @ cay(D[:3])
            else:
                g = pose(x[i : i + 1], R[i : i + 1])[0] @ cay4(D)
                x1[i], R1[i] = g[:3, 3], g[:3, :3]
        end += dt / 2 * self.forces(x1, R1, separate)
        V1 = np.zeros_like(end)
        for i in range(self.n):
            free = self.free[i]
            V1[i, free] = np.linalg.solve(self.M[np.ix_(free, free)], end[i, free])
        if separate:
            V1[:, 3:] = np.einsum("nji,nj->ni", R1, V1[:, 3:])
        return x1, R1, V1


def pose(x, R):
    g = np.zeros((len(x), 4, 4), dtype=np.result_type(x, R))
    g[:, :3, :3], g[:, :3, 3], g[:, 3, 3] = R, x, 1
    return g


def slopes(D, separate):
    """How D = cay⁻¹(g⁰⁻¹g¹) changes (6×6, a column a direction) with g⁰ → g⁰e^ξ and with g¹ → g¹e^ξ.

    D^ = 2(G - 1)(G + 1)⁻¹ = 2 - 4(G + 1)⁻¹ with G = g⁰⁻¹g¹, so dD^ = 4(G + 1)⁻¹ dG (G + 1)⁻¹, with
    dG = -ξ^G or Gξ^. Translations apart from rotations just change by their difference.
    """
    G = cay4(np.concatenate([D[:3], 0 * D[3:]]) if separate else D)
    inverse = np.linalg.inv(G + np.eye(4))
    columns = [], []
    for e in np.eye(6):
        for found, sign, dG in zip(columns, (-1, 1), (-hat4(e) @ G, G @ hat4(e)), strict=True):
            d = 4 * inverse @ dG @ inverse
            found.append(np.concatenate([vee(d[:3, :3]), sign * e[3:] if separate else d[:3, 3]]))
    return tuple(np.array(c).T for c in columns)
