"""Structs that compiled chains share with Python; see chain.hpp."""

from ctypes import Structure, c_double, c_int, c_long, c_void_p


class Reduced(Structure):
    _fields_ = [
        ("n", c_long),
        ("band", c_long),
        ("length", c_long),
        ("M", c_void_p),
        ("L", c_void_p),
        ("r", c_void_p),
        ("inverse", c_void_p),
        ("square", c_void_p),
        ("pivot", c_void_p),
        ("held", c_void_p),
        ("reach", c_void_p),
        ("last", c_void_p),
        ("fronts", c_void_p),
        ("in_fronts", c_int),
    ]


class Front(Structure):
    """Unknowns that are eliminated together; see fronts.hpp."""

    _fields_ = [
        ("own", c_long),
        ("size", c_long),
        ("width", c_long),
        ("parent", c_long),
        ("A", c_void_p),
        ("L", c_void_p),
        ("U", c_void_p),
        ("inverse", c_void_p),
        ("column", c_void_p),
        ("ids", c_void_p),
        ("to", c_void_p),
        ("runs", c_void_p),
        ("n_runs", c_long),
    ]


class Fronts(Structure):
    _fields_ = [
        ("fronts", c_void_p),
        ("n", c_long),
        ("memory", c_void_p),
        ("size", c_long),
        ("ones", c_void_p),
        ("n_ones", c_long),
        ("work", c_void_p),
    ]


class Chain(Structure):
    """A group of pieces."""

    _fields_ = [
        ("F", c_void_p),
        ("C", c_void_p),
        ("m", c_long),
        ("count", c_void_p),
        ("whole", c_long),
        ("free", c_void_p),
        ("special", c_void_p),
        ("once", c_void_p),
        ("nodes", c_void_p),
        ("there", c_void_p),
        ("left", c_void_p),
        ("right", c_void_p),
        ("source", c_void_p),
        ("target", c_void_p),
        ("entries", c_long),
        ("X", c_void_p),
        ("factors", c_void_p),
        ("rhs", c_void_p),
        ("given", c_void_p),
        ("saved", c_void_p),
        ("normal", c_void_p),
        ("step", c_void_p),
        ("alone", c_void_p),
    ]


class Ranks(Structure):
    """MPI functions and memory for sums over the ranks."""

    _fields_ = [
        ("allreduce", c_void_p),
        ("real", c_void_p),
        ("sum", c_void_p),
        ("comm", c_void_p),
        ("own", c_void_p),
        ("all", c_void_p),
    ]


class Net(Structure):
    _fields_ = [
        ("rods", c_void_p),
        ("n_rods", c_long),
        ("links", c_void_p),
        ("n_links", c_long),
        ("between", Reduced),
        ("ranks", c_void_p),
        ("residual", c_double),
        ("update", c_double),
        ("size", c_double),
        ("smallest", c_double),
    ]


class Test(Structure):
    """The convergence test of Newton's iteration; see ``Test`` in newton.hpp."""

    _fields_ = [
        ("kind", c_int),
        ("max_it", c_int),
        ("rtol", c_double),
        ("atol", c_double),
        ("stol", c_double),
        ("unnoticed", c_double),
        ("last", c_double),
        ("small", c_double),
        ("left", c_double),
        ("positions", c_int),
        ("contracting", c_int),
        ("grown", c_double),
        ("circles", c_int),
    ]


class Border(Structure):
    """One more equation and unknown of a chain; see border.hpp."""

    _fields_ = [("number", c_void_p), ("slope", c_double), ("left", c_double)]


class Copy(Structure):
    """A copy of a function's values between a layout and Firedrake."""

    _fields_ = [
        ("here", c_void_p),
        ("there", c_void_p),
        ("place", c_void_p),
        ("count", c_long),
        ("size", c_int),
    ]


class Kept(Structure):
    """The rows in which steps save the values that they have changed; see newton.hpp."""

    _fields_ = [
        ("arrays", c_void_p),
        ("sizes", c_void_p),
        ("n", c_long),
        ("length", c_long),
        ("to", c_void_p),
    ]


class Meeting(Structure):
    """The nodes at which pieces end; see back.hpp."""

    _fields_ = [
        ("ids", c_void_p),
        ("number", c_long),
        ("sums", c_void_p),
        ("changes", c_void_p),
        ("n", c_int),
    ]


class Reads(Structure):
    """The values of forward steps that the reverse sweep reads; see back.hpp."""

    _fields_ = [
        ("places", c_void_p),
        ("rows", c_void_p),
        ("n", c_long),
        ("length", c_long),
        ("times", c_void_p),
        ("clock", c_void_p),
    ]
