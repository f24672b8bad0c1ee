"""Runs of steppers, with monitors, output, restart files and plots.

- `run`: advance a stepper while sampling and writing; returns a `History`
- monitors: `Energy`, `Momentum`, `Casimir`, `ConstraintDefect`, `Functional`, `Probe`, `Reactions`,
  `ContactMonitor`
- output: `VTKOutput` (ParaView), `Snapshots` (shapes in memory), `CSVFile` (table of samples)
- restart: `Checkpoint` (during a run), `save`, `resume`
- plots: `plot_energy`, `plot_momentum`, `plot_shapes`, `animate`, `plot_section`, `plot_solid`;
  `save_scene` for a browser, `space_axes` for your own

It uses only the methods of :class:`fdgeom.systems.system.System`, and `resume` alone changes a state.
"""

from fdgeom.systems.system import plotted_by

from .checkpoint import Checkpoint, resume, save
from .contact_monitor import ContactMonitor
from .history import CSVFile, History
from .monitors import Casimir, ConstraintDefect, Energy, Functional, Momentum, Probe, Reactions
from .plots import animate, plot_energy, plot_momentum, plot_shapes, plot_system
from .run import run
from .scene import save_scene
from .section_plots import plot_section, plot_solid
from .snapshots import Snapshots
from .space import space_axes
from .vtk import VTKOutput

__all__ = [
    "CSVFile", "Casimir", "Checkpoint", "ConstraintDefect", "ContactMonitor", "Energy",
    "Functional", "History", "Momentum", "Probe", "Reactions", "Snapshots", "VTKOutput",
    "animate", "plot_energy", "plot_momentum", "plot_section", "plot_shapes", "plot_solid",
    "resume", "run", "save", "save_scene", "space_axes",
]  # fmt: skip

plotted_by(plot_system)
