"""Host operations that give their derivatives as arrays, beside the same assignments as a Map."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, TestFunction, dx, split

import fdgeom as fg
from fdgeom.execution import Executor, Trajectory
from fdgeom.operations import (
    ArrayOperation,
    Assemble,
    Interpolate,
    Map,
    Tangents,
    linearise,
    owned_values,
)


class Product(ArrayOperation):
    """x <- x y, z <- y²."""

    def __init__(self, x, y, z):
        super().__init__([x, y], [x, z])
        self.x, self.y, self.z = x, y, z

    def run(self):
        x, y = self.x.dat.data_ro.copy(), self.y.dat.data_ro.copy()
        self.x.dat.data_wo[...], self.z.dat.data_wo[...] = x * y, y**2

    def tangents(self, dots):
        (dx, dy), x, y = owned_values(dots), self.x.dat.data_ro, self.y.dat.data_ro
        return [dx * y + x * dy, 2 * y * dy]

    def cotangents(self, bars):
        (a, b), x, y = bars, self.x.dat.data_ro, self.y.dat.data_ro
        return [a * y, a * x + 2 * b * y]

    def cotangent_rates(self, bars, dots):
        (a, b), (dx, dy) = bars, owned_values(dots)
        return [a * dy, a * dx + 2 * b * dy]


class Functions:
    """Functions with given values, and operations that read and write them."""

    def __init__(self, values, make):
        space = FunctionSpace(fg.copies(3), "DG", 0)
        self.every = [Function(space) for _ in values]
        self.put(self.every, values)
        x, y, z = self.every
        # What stands around the operation reads and overwrites its results.
        before, after = Map(values={x: x + y * y}), Map(values={y: z * x * y})
        self.operations = [before, make(x, y, z), after]

    @staticmethod
    def put(functions, values):
        for f, v in zip(functions, values, strict=True):
            f.dat.data_wo[...] = v


MAKE = (lambda x, y, z: Map(values={x: x * y, z: y * y}), Product)


def values_of(f):
    return np.zeros(3) if f is None else f.dat.data_ro.copy()


def results(make, values, dots, bars, seeded):
    """Tangents, cotangents, and cotangents of the operations with their tangents."""
    made = Functions(values, make)
    seeds = [made.every[k] for k in seeded]
    once = Trajectory(made.operations, seeds, made.every)
    once.advance(0.0, 1.0)
    made.put([once.cotangents[f] for f in seeds], bars)
    once.pull()
    found = [values_of(once.cotangents.get(f)) for f in made.every]

    made = Functions(values, make)
    tangents = Tangents(made.every)
    both = linearise(made.operations, tangents)
    made.put([tangents[f] for f in made.every], dots)
    Executor(both).step(0.0, 1.0)
    found += [values_of(tangents[f]) for f in made.every]

    made.put(made.every, values)
    made.put([tangents[f] for f in made.every], dots)
    seeds = [made.every[k] for k in seeded]
    seeds += [tangents[f] for f in seeds]
    wanted = [*made.every, *(tangents[f] for f in made.every)]
    twice = Trajectory(both, seeds, wanted)
    twice.advance(0.0, 1.0)
    made.put([twice.cotangents[f] for f in seeds], [*bars, *bars])
    twice.pull()
    return found + [values_of(twice.cotangents.get(f)) for f in wanted]


@pytest.mark.parametrize("seeded", [(0, 1, 2), (1,), (0,), (2,)])
def test_the_same_as_a_map(seeded, rng):
    values, dots = rng.uniform(1, 2, (3, 3)), rng.uniform(-1, 1, (3, 3))
    bars = rng.uniform(-1, 1, (len(seeded), 3))
    one, other = (results(make, values, dots, bars, seeded) for make in MAKE)
    for a, b in zip(one, other, strict=True):
        assert b == pytest.approx(a, rel=1e-12, abs=1e-13)
    assert max(np.abs(a).max() for a in one) > 0.1


class ProductOfParts(ArrayOperation):
    """q <- q p for the parts of z."""

    def __init__(self, z):
        super().__init__([z], z.subfunctions[:1])

    def run(self):
        q, p = self.reads[0].subfunctions
        q.dat.data_wo[...] = q.dat.data_ro * p.dat.data_ro

    def cotangents(self, bars):
        q, p = (f.dat.data_ro.copy() for f in self.reads[0].subfunctions)
        return [[bars[0] * p, bars[0] * q]]


def assembled_product(z):
    w = TestFunction(z.subfunctions[0].function_space())
    q, p = split(z)
    return Assemble(work=w * q * p * dx, by={w: z.subfunctions[0]})


def interpolated_product(z):
    q, p = split(z)
    return Interpolate(expression=q * p, target=z.subfunctions[0])


@pytest.mark.parametrize("make", [ProductOfParts, assembled_product, interpolated_product])
def test_a_part_is_set_from_the_whole(make, rng):
    """q <- q p on an interval of length 1: q̄ is overwritten, p̄ is added to."""
    space = FunctionSpace(fg.copies(1), "DG", 0)
    z = Function(space * space)
    q, p = z.subfunctions
    made = Trajectory([make(z)], [q, p], [z])
    (a, b), bars = rng.uniform(1, 2, (2, 1)), rng.uniform(1, 2, (2, 1))
    Functions.put([q, p], [a, b])
    Functions.put([made.cotangents[f] for f in (q, p)], bars)
    made.advance(0.0, 1.0)
    made.pull()
    found = [made.cotangents[f].dat.data_ro for f in (q, p)]
    expected = bars[0] * b, bars[1] + bars[0] * a
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-14)
