"""Data of beams in the order of their network: what brings them there, and its transpose."""

import numpy as np
import pytest
from firedrake import COMM_WORLD, Cofunction, Function, TensorFunctionSpace
from verification.joined import straight

import fdgeom as fg
from fdgeom.beams.network.network import Network
from fdgeom.beams.network.network_consistency import BeamCopy


@pytest.mark.parametrize("cells", [True, False])
def test_transposed(cells):
    """⟨G δ, b⟩ = ⟨δ, Gᵀ b⟩ for each beam; a joint to the ground has a node and a cell of its own."""
    first = straight((0, 0, 0), (1.0, 0, 0), 3)
    second = straight((1.0, 0, 0), (2.0, 0, 0), 4)
    joints = [fg.Spherical(fg.ground, first.left), fg.Spherical(first.right, second.left)]
    beams, rng = [first, second], np.random.default_rng(COMM_WORLD.rank)
    network = Network(beams, joints)
    family, degree = ("DG", 0) if cells else ("CG", 1)

    def random(function):
        function.dat.data_wo[...] = rng.uniform(-1, 1, function.dat.data_ro.shape)
        return function

    spaces = [TensorFunctionSpace(b.mesh, family, degree, shape=(2, 2)) for b in beams]
    samples = [random(Function(space)) for space in spaces]
    size = len(network.cells if cells else network.numbering.coordinates)
    field = network.field(np.zeros((size, 2, 2)), "data", cells=cells)
    gather, total = BeamCopy(network, (field, samples, beams), gathers=True), 0.0
    gather.run()
    for k, sample in enumerate(samples):
        change = random(Function(sample.function_space()))
        bar = random(Cofunction(field.function_space().dual())).dat.data_ro
        alone = [change if sample is f else None for f in samples]
        there = np.sum(gather.tangents(alone)[0] * bar)
        back = np.sum(gather.cotangents([bar])[k] * change.dat.data_ro)
        there, back = (COMM_WORLD.allreduce(float(v)) for v in (there, back))
        assert abs(there) > 1e-3
        assert there == pytest.approx(back, rel=1e-13, abs=1e-13)
        # It is linear: of the values themselves it makes what is there.
        total = total + gather.tangents([sample if sample is f else None for f in samples])[0]
    assert np.allclose(total, field.dat.data_ro, rtol=0, atol=1e-15)
