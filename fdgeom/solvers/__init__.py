"""Values of Functions, and fields that depend on other data.

- `data`: values as arrays, saved and restored;
- `derived`: dependent fields; `rules`: their derivatives; `spread`: numbers of a Real space as fields.
"""

from fdgeom.solvers.data import Field, Number, Snapshot, fields, key
