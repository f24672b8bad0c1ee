"""The structs that compiled units share with Python; the headers say what they are."""

from ctypes import Structure, c_double, c_int, c_long, c_void_p


class FieldPointer(Structure):
    _fields_ = [("p", c_void_p), ("stride", c_long), ("count", c_long)]


class Copy(Structure):
    _fields_ = [
        ("chain", FieldPointer),
        ("values", c_void_p),
        ("order", c_void_p),
        ("size", c_int),
    ]


class Range(Structure):
    _fields_ = [("first", c_long), ("last", c_long), ("total", c_long)]


class Tolerances(Structure):
    _fields_ = [
        ("rtol", c_double),
        ("atol", c_double),
        ("stol", c_double),
        ("max_it", c_int),
        ("single", c_int),
        ("more", c_int),
    ]


class Report(Structure):
    _fields_ = [
        ("solves", c_long),
        ("iterations", c_long),
        ("most", c_long),
        ("worst", c_long),
        ("failed", c_long),
        ("norm", c_double),
        ("reason", c_int),
        ("sum", c_double),
    ]


class Essential(Structure):
    _fields_ = [
        ("count", c_long),
        ("node", c_void_p),
        ("mask", c_void_p),
        ("share", c_double),
        ("old", FieldPointer),
        ("target", FieldPointer),
        ("saved", c_void_p),
    ]


class Context(Structure):
    _fields_ = [
        ("F", c_void_p),
        ("M", c_void_p),
        ("C", c_void_p),
        ("B", c_void_p),
        ("nodes", c_void_p),
        ("cells", c_long),
        ("tol", c_void_p),
        ("report", c_void_p),
        ("essential", c_void_p),
        ("exchange", c_void_p),
        ("ghosts", c_long),
        ("functions", c_long),
        ("slots", c_void_p),
        ("slot", c_long),
        ("there", c_void_p),
        ("more", c_void_p),
    ]


class Kept(Structure):
    _fields_ = [
        ("field", c_int),
        ("offset", c_long),
        ("rows", c_long),
        ("length", c_long),
        ("lead", c_long),
        ("first", c_long),
        ("last", c_long),
    ]


class Move(Structure):
    _fields_ = [
        ("phase", c_int),
        ("dt", c_void_p),
        ("value", c_double),
        ("exchange", c_int),
        ("exchanges", c_int),
        ("keeps", c_int),
        ("kept", c_void_p),
        ("reads", c_int),
        ("read", c_void_p),
    ]


class ExchangedField(Structure):
    _fields_ = [
        ("sf", c_void_p),
        ("unit", c_void_p),
        ("values", c_void_p),
        ("size", c_int),
        ("sends", c_long),
        ("ghosts", c_long),
        ("send_at", c_void_p),
        ("send_from", c_void_p),
        ("ghost_at", c_void_p),
        ("ghost_to", c_void_p),
        ("chain", FieldPointer),
    ]


class Exchange(Structure):
    _fields_ = [
        ("begin", c_void_p),
        ("end", c_void_p),
        ("allreduce", c_void_p),
        ("replace", c_void_p),
        ("integer", c_void_p),
        ("minimum", c_void_p),
        ("comm", c_void_p),
        ("fields", c_void_p),
    ]
