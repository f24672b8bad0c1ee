"""Why something cannot be compiled into local loops."""

from __future__ import annotations


class CannotCompile(ValueError):
    """A form is not of the kind that the compiled path treats; the message names the term."""


class NoCompiler(RuntimeError):
    """There is no working C++ compiler; the message says what to do without."""
