"""``python -m fdgeom``: versions, self-test and demos; wheels carry the demos."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pylit
import pytest

import fdgeom
from fdgeom import __main__ as command

ROOT = Path(fdgeom.__file__).parents[1]
TEXTS = {path.parent.name: path for path in sorted((ROOT / "demos").glob("*/*.py.rst"))}


def call(*arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "fdgeom", *arguments], cwd=cwd, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def test_versions_and_self_test(tmp_path):
    code, out, err = call(cwd=tmp_path)
    assert code == 0, out + err
    found = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert found["fdgeom"].startswith(fdgeom.__version__)
    assert list(found) == ["fdgeom", "Firedrake", "PETSc", "compiler", "cache", "self-test"]
    assert found["PETSc"].count(".") == 2
    assert Path(found["cache"]).is_dir()
    assert found["self-test"].startswith("passed")


@pytest.mark.parametrize("difference", [1e-3, float("nan")])
def test_a_failed_self_test_is_an_exit_code(difference, monkeypatch, capsys):
    monkeypatch.setattr(command, "self_test", lambda: difference)
    assert command.main([]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_an_error_in_the_self_test_is_told(monkeypatch, capsys):
    def stop():
        raise RuntimeError("no compiler")

    monkeypatch.setattr(command, "self_test", stop)
    assert command.main([]) == 1
    assert "FAILED: RuntimeError: no compiler" in capsys.readouterr().out


def test_the_list_has_every_demo(capsys):
    assert command.main(["demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    titles = {name: path.read_text().splitlines()[0] for name, path in TEXTS.items()}
    assert dict(line.split(maxsplit=1) for line in lines[: len(TEXTS)]) == titles


@pytest.mark.parametrize("name", TEXTS)
def test_scripts_are_those_of_pylit(name):
    text = TEXTS[name].read_text()
    expected = "".join(pylit.Text2Code(text.splitlines(keepends=True)))
    assert command.script(text) == expected


def test_a_demo_is_written_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main(["demo", "heavy_top"]) == 0
    written = (tmp_path / "heavy_top.py").read_text()
    compile(written, "heavy_top.py", "exec")
    (tmp_path / "heavy_top.py").write_text("mine")
    assert command.main(["demo", "heavy_top"]) == 2
    assert (tmp_path / "heavy_top.py").read_text() == "mine"
    assert "heavy_top.py exists already" in capsys.readouterr().err
    assert command.main(["demo", "heavy_top", "--force"]) == 0
    assert (tmp_path / "heavy_top.py").read_text() == written


def test_an_unknown_demo_gets_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, hint in (("heavytop", "did you mean heavy_top"), ("qqq", "demo lists them")):
        assert command.main(["demo", name]) == 2
        said = capsys.readouterr().err
        assert hint in said
        assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_wheel_and_sdist_carry_the_demos(tmp_path):
    """The wheel is built from the sdist, as an installer would do."""
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("build", "*.egg-info", ".venv", ".git", "__pycache__")
    shutil.copytree(ROOT, source, symlinks=True, ignore=ignored)
    build = "import setuptools.build_meta as b, sys; print(getattr(b, sys.argv[1])(sys.argv[2]))"
    subprocess.run(
        [sys.executable, "-c", build, "build_sdist", tmp_path],
        cwd=source, check=True, capture_output=True,
    )  # fmt: skip
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        file.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    subprocess.run(
        [sys.executable, "-c", build, "build_wheel", tmp_path],
        cwd=unpacked, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        demos = {name: file.read(name).decode() for name in file.namelist() if "/demos/" in name}
        modules = {name for name in file.namelist() if name.endswith(".py")}
    assert demos == {f"fdgeom/demos/{n}/{n}.py.rst": p.read_text() for n, p in TEXTS.items()}
    inside = {p.relative_to(ROOT).as_posix() for p in (ROOT / "fdgeom").rglob("*.py")}
    assert modules == {name for name in inside if "/demos/" not in name}
