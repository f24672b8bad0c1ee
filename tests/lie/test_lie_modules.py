"""The groups are modules too: their functions can be imported by name."""

import importlib

import pytest


@pytest.mark.parametrize("group", ["so3", "se3", "quaternion"])
@pytest.mark.parametrize("room", ["fdgeom.lie", "fdgeom.lie.arrays"])
def test_functions_of_a_group_can_be_imported_from_it(room, group):
    module = importlib.import_module(f"{room}.{group}")
    of_room = getattr(importlib.import_module(room), group)
    names = [name for name in dir(type(module.exp.__self__)) if name[0] != "_"]
    assert "exp" in names
    for name in names:
        assert getattr(module, name) == getattr(of_room, name)
    with pytest.raises(ImportError, match="no_such_function"):
        exec(f"from {room}.{group} import no_such_function")
