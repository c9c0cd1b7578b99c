"""A sphere in the place of the light bulb whose mesh is in no release of the suite.

`shapes.build_color_switch_lamp` of mikasa-robo-suite 1.0.0 loads `objects/low_poly_light_bulb.glb`, which neither its
wheel nor its source distribution holds, so that 27 tasks cannot start. Lamps have no collision shapes in any of them:
only images differ from those of the suite's authors. Where the file exists, nothing is changed.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

NOTE = "light bulbs drawn as spheres"
FAMILIES = ("BatteriesChecker", "BlinkCountButtonPress", "GatherAndRecall", "TimedTransfer", "TraceShape")
RADIUS_M = 0.02  # the lamp's foot is 0.043 m wide
SUBDIVISIONS = 2  # 320 triangles


def has_bulb(task: str) -> bool:
    """Whether a task of the suite, by its id, has lamps."""
    return task.startswith(FAMILIES)


def is_missing() -> bool:
    """Whether the installed suite lacks the mesh."""
    from mikasa_robo_suite.vla.utils import shapes

    return not (Path(shapes.__file__).parent / "objects" / "low_poly_light_bulb.glb").exists()


def replace_missing() -> None:
    """Have the suite's lamps made with a sphere where the mesh is missing.

    To be called before an environment is made; idempotent.
    """
    from mikasa_robo_suite.vla.utils import shapes

    stock: Any = shapes.build_color_switch_lamp
    if getattr(stock, "mended", False) or not is_missing():
        return

    def build_color_switch_lamp(*args: Any, **kwargs: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sphere.ply"
            path.write_bytes(_sphere())
            return stock(*args, bulb_asset_path=str(path), bulb_mesh_scale=1.0, bulb_z_offset=RADIUS_M / 2, **kwargs)

    build_color_switch_lamp.mended = True  # type: ignore[attr-defined]
    shapes.build_color_switch_lamp = build_color_switch_lamp


@functools.cache
def _sphere() -> bytes:
    import trimesh

    mesh: Any = trimesh.creation.icosphere(subdivisions=SUBDIVISIONS, radius=RADIUS_M)
    return mesh.export(file_type="ply")
