"""A resumed run equals the uninterrupted one; what does not fit is refused with its name."""

import os
import stat
import warnings

import h5py
import numpy as np
import pytest
from firedrake import (
    COMM_WORLD,
    Function,
    FunctionSpace,
    IntervalMesh,
    Mesh,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    UnitSquareMesh,
    VectorFunctionSpace,
)
from firedrake.mesh import plex_from_cell_list
from recording_fakes import Oscillators, OscillatorStepper, Rod, RodStepper, state_of

import fdgeom as fg
from fdgeom.errors import StepFailed
from fdgeom.recording import Checkpoint, resume, run, save
from fdgeom.recording.transfer import Transfer, places_of


def assert_equal_states(one, two):
    for name, values in state_of(one).items():
        assert np.array_equal(values, state_of(two)[name]), name


@pytest.mark.parametrize(
    "options",
    [
        {"degree": 1},
        {"degree": 3},
        {"degree": 2, "variant": "spectral"},
        {"degree": 2, "variant": "equispaced"},
        {"mesh": lambda: PeriodicIntervalMesh(5, 2.0)},
        {"mesh": lambda: PeriodicIntervalMesh(5, 2.0), "degree": 3},
    ],
)
def test_resumed_run_equals_the_uninterrupted_one_bit_for_bit(tmp_path, options):
    def make():
        return RodStepper(Rod(**{k: v() if callable(v) else v for k, v in options.items()}))

    whole, stopped, resumed = make(), make(), make()
    whole.advance(7)
    stopped.advance(4)
    save(stopped, tmp_path / "a.h5")
    resume(resumed, tmp_path / "a.h5")
    assert (resumed.t, resumed.steps) == (stopped.t, 4)
    assert_equal_states(resumed.system, stopped.system)
    resumed.advance(3)
    assert resumed.t == whole.t
    assert_equal_states(resumed.system, whole.system)


def test_a_mesh_with_another_numbering_gets_the_same_values(tmp_path):
    """The same cells listed backwards and with random node numbers."""
    cells, n = 6, 7
    there = IntervalMesh(cells, 2.0)
    number = np.random.default_rng(0).permutation(n)
    x = np.empty((n, 1))
    x[number, 0] = np.linspace(0, 2, n)
    edges = np.stack([number[1:], number[:-1]], axis=1)[::-1]
    here = Mesh(plex_from_cell_list(1, edges, x, there.comm), reorder=False)
    one, two = RodStepper(Rod(mesh=there, degree=3)), RodStepper(Rod(mesh=here, degree=3))
    one.advance(2)
    save(one, tmp_path / "a.h5")
    transfer = Transfer(places_of(there), here)
    assert not transfer.same  # else this tests nothing
    two.advance(1)
    resume(two, tmp_path / "a.h5")
    for name, f in one.system.functions().items():
        assert np.array_equal(along(f), along(two.system.functions()[name])), name


def test_cells_at_one_place_are_not_mixed_up():
    """In another order nobody can tell the two bars of a cross from one another."""
    corners = np.array([[-1.0, -1], [1, 1], [-1, 1], [1, -1], [3, 1]])
    bars = np.array([[0, 1], [2, 3], [1, 4]])
    there, here = (
        Mesh(plex_from_cell_list(1, order, corners, COMM_WORLD), dim=2, reorder=False)
        for order in (bars, bars[::-1])
    )
    assert Transfer(places_of(there), there).same
    with pytest.raises(ValueError, match="several share a place"):
        Transfer(places_of(there), here)


def test_cells_of_joints_have_places_of_their_own():
    """The midpoint of a cell between two beams may lie in the middle of a cell of a third one."""
    section = fg.Section.rectangle(0.1, 0.1, density=1, youngs_modulus=1e3, poisson_ratio=0.3)
    beams = [fg.Beam(IntervalMesh(2, 1.0), section) for _ in range(4)]
    joints = [fg.Spherical(beams[0].left, beam.left) for beam in beams[1:]]
    places = places_of(fg.Assembly(beams, joints).mesh)
    assert len(np.unique(places[:, 0])) < len(places) == 11
    assert len(np.unique(places, axis=0)) == 11


def along(f):
    """Values cell by cell and node by node in the order of the coordinate."""
    V = f.function_space()
    x = SpatialCoordinate(V.mesh())[0]
    at = Function(FunctionSpace(V.mesh(), V.ufl_element().sub_elements[0])).interpolate(x)
    cells = V.cell_node_map().values
    at = at.dat.data_ro[cells]
    cells = np.take_along_axis(cells, at.argsort(axis=1), axis=1)
    return f.dat.data_ro[cells[at.mean(axis=1).argsort()]]


def test_other_meshes_and_spaces_of_numbers(tmp_path):
    """Triangles, scalars, vectors and a single real number."""

    class Other(Oscillators):
        def __init__(self):
            self.mesh = UnitSquareMesh(3, 2)
            rng = np.random.default_rng()
            self.a = Function(FunctionSpace(self.mesh, "CG", 3))
            self.b = Function(VectorFunctionSpace(self.mesh, "DG", 1))
            self.c = Function(FunctionSpace(self.mesh, "R", 0))
            for f in (self.a, self.b, self.c):
                f.dat.data[...] = rng.normal(size=f.dat.data.shape)

        def functions(self):
            return {"a": self.a, "b": self.b, "c": self.c}

    one, two = OscillatorStepper(Other()), OscillatorStepper(Other())
    save(one, tmp_path / "a.h5")
    resume(two, tmp_path / "a.h5")
    assert_equal_states(one.system, two.system)


def test_a_mixed_function_and_what_the_stepper_keeps_are_saved_too(tmp_path):
    class Mixed(Rod):
        def functions(self):
            return {"state": self.state}

    class WithMemory(RodStepper):
        def __init__(self, system):
            super().__init__(system)
            self.memory = Function(system.position.function_space())

        def functions(self):
            return {"memory": self.memory}

    one, two = WithMemory(Mixed()), WithMemory(Mixed())
    one.memory.assign(3.0)
    one.advance(2)
    save(one, tmp_path / "a.h5")
    resume(two, tmp_path / "a.h5")
    assert np.array_equal(one.system.strain.dat.data_ro, two.system.strain.dat.data_ro)
    assert np.array_equal(one.system.momentum.dat.data_ro, two.system.momentum.dat.data_ro)
    assert np.all(two.memory.dat.data_ro == 3.0)


def test_checkpoints_are_written_in_time_and_at_the_end(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        "fdgeom.recording.checkpoint.save", lambda stepper, path: written.append(stepper.steps)
    )
    run(RodStepper(Rod()), steps=10, every=7, checkpoint=Checkpoint(tmp_path / "a.h5", every=4))
    run(RodStepper(Rod()), steps=10, checkpoint=tmp_path / "a.h5")
    assert written == [4, 8, 10, 10]


def test_a_write_that_fails_leaves_the_previous_file(tmp_path, monkeypatch):
    stepper = RodStepper(Rod())
    stepper.advance(2)
    save(stepper, tmp_path / "a.h5")
    before = (tmp_path / "a.h5").read_bytes()
    stepper.advance(1)

    def killed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        save(stepper, tmp_path / "a.h5")
    assert (tmp_path / "a.h5").read_bytes() == before
    stepper.system.position.dat.data[0] = np.inf
    with pytest.raises(StepFailed, match="'position'"):
        save(stepper, tmp_path / "a.h5")


def test_another_dt_is_warned_of(tmp_path):
    stepper = RodStepper(Rod(), dt=0.1)
    stepper.advance(1)
    save(stepper, tmp_path / "a.h5")
    other = RodStepper(Rod(), dt=0.05)
    with pytest.warns(UserWarning, match="dt = 0.1.*0.05"):
        resume(other, tmp_path / "a.h5")
    assert (other.dt, other.t, other.steps) == (0.05, 0.1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resume(RodStepper(Rod(), dt=0.1), tmp_path / "a.h5")


def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path):
    path = tmp_path / "a.h5"
    save(RodStepper(Rod(cells=4)), path)
    for other, difference in [
        (OscillatorStepper(Oscillators()), "holds strain, momentum.*the stepper q, p"),
        (RodStepper(Rod(cells=5)), "degrees of freedom of 'strain'"),
        (RodStepper(Rod(cells=2, degree=2)), "element of 'strain'"),
        (RodStepper(Rod(mesh=IntervalMesh(4, 3.0))), "midpoints"),
    ]:
        before = state_of(other.system)
        with pytest.raises(ValueError, match=f"path = '.*a.h5'.*{difference}"):
            resume(other, path)
        assert all(np.array_equal(before[n], v) for n, v in state_of(other.system).items())
        assert other.steps == 0


def test_missing_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "a.h5"
    stepper = RodStepper(Rod())
    with pytest.raises(ValueError, match="path = .*no such file"):
        resume(stepper, path)
    save(stepper, path)
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(ValueError, match="path = .*damaged"):
        resume(stepper, path)
    path.write_text("not HDF5")
    with pytest.raises(ValueError, match="path = .*damaged"):
        resume(stepper, path)
    with h5py.File(path, "w") as file:
        file["other"] = 1.0
    with pytest.raises(ValueError, match="path = .*not written by fdgeom"):
        resume(stepper, path)
    # One number changed, as a bad disk would.
    changed = bytearray(good)
    at = good.index(stepper.system.position.dat.data_ro[1].tobytes())
    changed[at + 3] ^= 1
    path.write_bytes(changed)
    before = state_of(stepper.system)
    with pytest.raises(ValueError, match="path = .*values of 'position'"):
        resume(stepper, path)
    assert all(np.array_equal(before[n], v) for n, v in state_of(stepper.system).items())


def test_a_full_disk_is_found_before_it_is_written_to(tmp_path, monkeypatch):
    """Said with the sizes; the old file stays, and nothing half written."""
    stepper = OscillatorStepper(Oscillators())
    path = tmp_path / "a.h5"
    save(stepper, path)
    before = path.read_bytes()
    usage = type("usage", (), {"free": 20_000})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    with pytest.raises(ValueError, match=r"the disk is full: about .* needed and 20 kB are free"):
        save(stepper, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


def test_what_hdf5_says_is_one_sentence(tmp_path, monkeypatch):
    """PETSc's and HDF5's stacks of C functions are left out."""

    def fails(*_, **__):
        raise RuntimeError(
            "error code 76\n[0] VecView() at vec.c:1\n[0] HDF5 call H5Dwrite() Status -1"
        )

    monkeypatch.setattr("h5py.Group.create_dataset", fails)
    with pytest.raises(ValueError, match="is the disk full") as caught:
        save(OscillatorStepper(Oscillators()), tmp_path / "a.h5")
    assert str(caught.value).endswith("(HDF5: HDF5 call H5Dwrite() Status -1)")
    assert "\n" not in str(caught.value)


def test_a_damaged_description_is_called_damaged(tmp_path):
    stepper = OscillatorStepper(Oscillators())
    path = tmp_path / "a.h5"
    save(stepper, path)
    with h5py.File(path, "r+") as file:
        del file["fdgeom/functions"]
        file["fdgeom/functions"] = np.zeros(3, dtype=np.uint8)
    with pytest.raises(ValueError, match="it is damaged or was not written by fdgeom"):
        resume(stepper, path)


# --- what is replaced -----------------------------------------------------------------------------------


def test_pipes_and_folders_are_not_replaced(tmp_path):
    stepper = OscillatorStepper(Oscillators())
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for write in (
        lambda: save(stepper, path),
        lambda: run(OscillatorStepper(Oscillators()), steps=1, checkpoint=path),
    ):
        with pytest.raises(ValueError, match="pipe' cannot be written: it is a device or a pipe"):
            write()
    assert stat.S_ISFIFO(path.stat().st_mode)
    with pytest.raises(ValueError, match="it is a folder; give the name of a file"):
        save(stepper, tmp_path)


def test_devices_are_not_replaced():
    with pytest.raises(ValueError, match="null' cannot be written: it is a device or a pipe"):
        save(OscillatorStepper(Oscillators()), "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_link_stays(tmp_path):
    """What it leads to is replaced, or made, also where that is in another folder."""
    stepper, other = OscillatorStepper(Oscillators()), OscillatorStepper(Oscillators())
    (tmp_path / "data").mkdir()
    link, file = tmp_path / "link.h5", tmp_path / "data" / "a.h5"
    link.symlink_to(file)
    for _ in range(2):
        stepper.advance(1)
        save(stepper, link)
    assert link.is_symlink()
    assert not file.is_symlink()
    for path in (link, file):
        resume(other, path)
        assert other.steps == 2
        assert_equal_states(other.system, stepper.system)
    assert [p.name for p in file.parent.iterdir()] == ["a.h5"]


def test_two_runs_on_one_path(tmp_path):
    """Whichever comes second to a write is told, and the other's file stays."""
    path = tmp_path / "a.h5"
    one, two = OscillatorStepper(Oscillators()), OscillatorStepper(Oscillators())
    first, second = Checkpoint(path, every=1), Checkpoint(path, every=1)
    first.open(one)
    second.open(two)
    one.advance(3)
    first.write(one)
    first.write(one)
    for _ in range(2):
        with pytest.raises(
            ValueError, match="a.h5' was written by another run meanwhile: give eac"
        ):
            second.write(two)
    resume(two, path)
    assert two.steps == 3

    class Nested:
        """An output that writes a restart file of the same name."""

        every = 2

        def open(self, stepper):
            pass

        def write(self, stepper):
            if stepper.steps:
                save(stepper, path)

        def close(self):
            pass

    with pytest.raises(ValueError, match="was written by another run meanwhile"):
        run(one, steps=4, output=Nested(), checkpoint=Checkpoint(path, every=1))


def test_one_run_after_another_on_one_path(tmp_path):
    """The file of an earlier run is replaced, as is one that is taken away, or none."""
    path = tmp_path / "a.h5"
    checkpoint = Checkpoint(path, every=2)
    stepper = OscillatorStepper(Oscillators())
    for k in (1, 2):
        run(stepper, steps=5, checkpoint=checkpoint)
        run(stepper, steps=5, checkpoint=path)
        other = OscillatorStepper(Oscillators())
        resume(other, path)
        assert other.steps == stepper.steps == 10 * k
    run(stepper, steps=5, checkpoint=checkpoint)
    path.unlink()
    checkpoint.write(stepper)
    path.write_text("no restart file")
    run(stepper, steps=5, checkpoint=checkpoint)
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


@pytest.mark.parametrize(("family", "degree"), [("N1curl", 1), ("RT", 2), ("CR", 1)])
def test_nodes_that_are_no_points(tmp_path, family, degree):
    """Edge and facet elements go on with the same numbering; with another they are refused."""

    class Field(Oscillators):
        def __init__(self, mesh):
            self.mesh = mesh
            self.q = Function(FunctionSpace(mesh, family, degree))
            self.q.dat.data[:] = np.random.default_rng(0).normal(size=self.q.dat.data.shape)

        def functions(self):
            return {"q": self.q}

    one = OscillatorStepper(Field(UnitSquareMesh(2, 2)))
    two = OscillatorStepper(Field(UnitSquareMesh(2, 2)))
    two.system.q.assign(0.0)
    save(one, tmp_path / "a.h5")
    resume(two, tmp_path / "a.h5")
    assert_equal_states(one.system, two.system)
    if family != "CR":
        other = UnitSquareMesh(2, 2, reorder=False)
        assert not np.array_equal(
            other.coordinates.dat.data_ro, one.system.mesh.coordinates.dat.data_ro
        )
        with pytest.raises(ValueError, match="the nodes of .* are not those of the file"):
            resume(OscillatorStepper(Field(other)), tmp_path / "a.h5")
