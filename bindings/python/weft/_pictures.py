"""Pictures of layouts and plans for notebooks, which the tool draws."""

from __future__ import annotations

import pathlib
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._layouts import Plan, Spec

TOOL = pathlib.Path(__file__).parent / "bin" / "weft"


def _draw(*arguments: str) -> str | None:
    """The SVG of a command of the tool; None, and a notebook shows the text, if there is no picture."""
    done = subprocess.run([TOOL, *arguments, "--svg", "-"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def _tensor(spec: Spec) -> tuple[str, ...]:
    shape = "x".join(map(str, spec.shape)) if spec.shape else "[]"
    return "--mesh", str(spec.mesh), "--shape", shape, "--dtype", spec.dtype


def of_spec(spec: Spec) -> str | None:
    """What each rank holds."""
    return _draw("layout", *_tensor(spec)[:4], "--placements", spec.placements)


def of_plan(plan: Plan, options: dict[str, Any] | None) -> str | None:
    """The steps of a plan that was made with these options: minimize, memory_limit, costs."""
    source, target = plan.source, plan.target
    if source is None or target is None:
        return None
    minimize, memory_limit, costs = options.values() if options else ("time", 0, None)
    arguments = [
        "plan", *_tensor(source), "--to-mesh", str(target.mesh), "--to-dtype", target.dtype,
        "--from", source.placements, "--to", target.placements, "--minimize", minimize,
    ]  # fmt: skip
    if memory_limit:
        arguments += ["--memory-limit", str(memory_limit)]
    if costs is not None:
        arguments += ["--costs", costs]
    return _draw(*arguments)
