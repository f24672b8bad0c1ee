"""Structs that compiled units share with Python, read from the headers."""

import re
from ctypes import Structure, c_double, c_int, c_long, c_void_p
from importlib.resources import files


def header(name: str) -> str:
    """The text of a header file of this package."""
    return files("fdgeom.solvers.compiled").joinpath(name).read_text()


def declared(name: str, file: str, **members: type[Structure]) -> type[Structure]:
    """The ctypes class of a struct in a header; ``members`` are the types of its nested structs, by name."""
    kinds = {"int": c_int, "long": c_long, "double": c_double, **members}
    text = re.sub(r"//.*", "", header(file))
    body = re.search(rf"^struct {name} {{(.*?)}};", text, re.MULTILINE | re.DOTALL)[1]
    fields = []
    for line in filter(None, map(str.strip, body.split(";"))):
        kind, names = re.match(r"(?:const )?(\w+)(.*)", line, re.DOTALL).groups()
        for one in names.split(","):
            fields.append((re.findall(r"\w+", one)[-1], c_void_p if "*" in one else kinds[kind]))
    return type(name, (Structure,), {"_fields_": fields})


FieldPointer = declared("Field", "loops.hpp")
Copy = declared("Copy", "copy.hpp", Field=FieldPointer)
Range = declared("Range", "loops.hpp")
Tolerances = declared("Tolerances", "simd.hpp")
Report = declared("Report", "simd.hpp")
Essential = declared("Essential", "loops.hpp", Field=FieldPointer)
Context = declared("Context", "loops.hpp")
Move = declared("Move", "advance.hpp")
