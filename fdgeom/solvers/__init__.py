"""Values of Functions, and fields that depend on other data.

- `data`: values as arrays, saved and restored;
- `derived`: dependent fields.
"""

from fdgeom.solvers.data import Field, Number, Snapshot, fields, key
