"""The groups are modules too: their functions can be imported by name."""

import importlib

import pytest


@pytest.mark.parametrize("group", ["so3", "se3", "quaternion"])
def test_functions_of_a_group_can_be_imported_from_it(group):
    module = importlib.import_module(f"fdgeom.lie.{group}")
    of_package = getattr(importlib.import_module("fdgeom.lie"), group)
    names = [name for name in dir(type(of_package)) if name[0] != "_"]
    assert "exp" in names
    for name in names:
        assert getattr(module, name) == getattr(of_package, name)
    with pytest.raises(ImportError, match="no_such_function"):
        exec(f"from fdgeom.lie.{group} import no_such_function")
