"""The public names, and where their parameters are explained."""

import inspect
import re
import subprocess
import sys

import pytest
from numpydoc.docscrape import NumpyDocString
from robustness.calls import small

import fdgeom as fg

#: Arguments of any number, documented as such.
ANY_NUMBER = {"Contact": ["obstacles"]}
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
#: PETSc makes the first three, fdgeom raises the others.
NOT_CALLED = {"ChainLU", "ChainNewton", "LocalNewton", "LoadStepFailed", "StepFailed"}


CALLABLES = {name: getattr(fg, name) for name in fg.__all__ if callable(getattr(fg, name))}
for name in ("from_properties", "rectangle", "circle", "tube", "from_mesh", "along", "from_table"):
    CALLABLES[f"Section.{name}"] = getattr(fg.Section, name)


STEPPERS = [n for n, c in CALLABLES.items() if isinstance(c, type) and issubclass(c, fg.Stepper)]


@pytest.mark.parametrize("name", CALLABLES)
def test_parameters(name):
    """Each parameter is seen in the signature and explained in the docstring itself."""
    thing = CALLABLES[name]
    parameters = inspect.signature(thing).parameters.values()
    assert [p.name for p in parameters if p.kind in VARIABLE] == ANY_NUMBER.get(name, [])
    docstring = NumpyDocString(inspect.cleandoc(thing.__doc__))
    if name not in NOT_CALLED:
        names = [entry.name.split(",") for entry in docstring["Parameters"]]
        assert {p.name for p in parameters} <= {n.strip(" *") for each in names for n in each}
    for section in ("Parameters", "Attributes", "Returns"):
        assert all(entry.desc for entry in docstring[section] if entry.name), section


def test_a_composition_has_the_parameters_of_its_method():
    composed = inspect.signature(fg.Composition(fg.SymmetricPoissonIntegrator))
    assert composed == inspect.signature(fg.SymmetricPoissonIntegrator)
    assert "configuration" in composed.parameters


def test_the_run_of_a_stepper_has_the_parameters_of_run():
    method, function = (inspect.signature(f) for f in (fg.Stepper.run, fg.run))
    own, others = ([(p.name, p.default) for p in s.parameters.values()] for s in (method, function))
    assert own[1:] == others[1:]


def test_what_is_imported_when_used():
    """``import fdgeom`` needs none of these beside Firedrake."""
    heavy = (
        "scipy.interpolate scipy.optimize scipy.spatial scipy.stats matplotlib.pyplot vtkmodules"
    )
    code = (
        "import sys, firedrake; before = set(sys.modules); import fdgeom; "
        f"print(*(set('{heavy}'.split()) & set(sys.modules) - before))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not found.stdout.strip()


def hooks(cls):
    """The names that a class and its base classes list under "For authors"."""
    found = [
        re.search(r"For authors: (.*?)\.$", vars(base).get("__doc__") or "", re.DOTALL | re.M)
        for base in cls.__mro__
    ]
    return {name for listed in found if listed for name in re.findall(r"``(\w+)``", listed[1])}


@pytest.mark.parametrize(
    "make",
    [
        small.beam, small.assembly, small.stepper, small.body, small.oscillator, small.pendulum,
        small.link, small.skate, small.spring, small.top,
    ],
)  # fmt: skip
def test_what_a_user_sees(make):
    """Without the hooks for authors, an object has at most forty public names."""
    thing = make()
    names = {name for name in dir(thing) if name[0] != "_"}
    assert hooks(type(thing)) <= names
    seen = names - hooks(type(thing))
    assert 10 <= len(seen) <= 40, sorted(seen)


def test_all_names_are_listed():
    """The lists that type checkers read have all names that ``fdgeom/__init__.py`` imports."""
    modules = {"analysis", "lie", "measures", "sections"}
    imported = {n for n, value in vars(fg).items() if n[0] != "_" and not inspect.ismodule(value)}
    assert sorted(fg.__all__) == sorted(imported | modules)
    assert set(dir(fg)) - set(fg.__all__) == {
        "beams",
        "statics",
        "steppers",
        "systems",
        "__version__",
    }


@pytest.mark.parametrize("name", ["Assembly", "Beam", *STEPPERS])
def test_what_authors_see(name):
    """With the hooks for authors, a class has at most forty public names."""
    assert len([found for found in dir(getattr(fg, name)) if found[0] != "_"]) <= 40
