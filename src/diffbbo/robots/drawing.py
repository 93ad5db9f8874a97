"""Pictures and films of walking robots, drawn from the simulator's own geometry: they need no graphics card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..figures import new_figure, styled
from ..types import Array, InputError, need
from .robot import Robot

Limb = tuple[Array, Array, float, str]  # one end, the other end, radius, kind
FILL = {"torso": "#D55E00", "hip": "#56B4E9", "thigh": "#0072B2", "ankle": "#004B76"}
EDGE = "#20303C"


@dataclass(frozen=True)
class Camera:
    """An orthographic view: `across` points to the right of the picture, `up` to its top, `towards` out of it."""

    across: Array
    up: Array
    towards: Array

    @classmethod
    def beside(cls, forward: Array, height: float = 0.45) -> Camera:
        """From the side of the way `forward` `(3,)`, raised by `height` radians."""
        side = np.cross(forward, [0, 0, 1.0])
        towards = np.cos(height) * side + np.sin(height) * np.array([0, 0, 1.0])
        return cls(forward, np.cross(towards, forward), towards)

    def flat(self, point: Array) -> Array:
        """Where a point `(..., 3)` lies in the picture, `(..., 2)`."""
        return np.stack([point @ self.across, point @ self.up], axis=-1)


def draw_walk(
    panel: Any, robot: type[Robot], score: Callable[..., float], design: Array, what: str, poses: int = 5
) -> None:
    """Draw `poses` moments of an episode into one panel, the earlier ones paler."""
    moments: list[list[Limb]] = []
    value = score(design, lambda body: moments.append(body.frames()))
    chosen = np.unique(np.linspace(0, len(moments) - 1, poses).astype(int))
    camera = _camera(robot)
    _stage(panel, camera, [moments[k] for k in chosen])
    for order, k in enumerate(chosen):
        _body(panel, camera, moments[k], alpha=0.25 + 0.75 * (order + 1) / len(chosen))
    seconds = (len(moments) - 1) * robot.seconds
    panel.set_title(f"{what}: {value:.0f} ({seconds:.1f} s)", loc="left")


def write_film(path: Path, robot: type[Robot], score: Callable[..., float], design: Array, name: str) -> None:
    """Write an episode as an animated GIF in real time."""
    if path.suffix.lower() != ".gif":
        raise InputError(f"{path} does not end in .gif.", "Films are written as GIF.")
    animation = need("matplotlib.animation", "plots", "Writing a film")
    moments: list[list[Limb]] = []
    value = score(design, lambda body: moments.append(body.frames()))
    camera = _camera(robot)
    path.parent.mkdir(parents=True, exist_ok=True)
    with styled():
        figure = new_figure(6.4, 2.6)
        panel = figure.subplots()

        def show(k: int) -> None:
            panel.clear()
            _stage(panel, camera, moments, follow=moments[k])
            _body(panel, camera, moments[k])
            panel.set_title(f"{name}, {k * robot.seconds:.1f} s, score {value:.0f}", loc="left")

        film = animation.FuncAnimation(figure, show, frames=len(moments), interval=1000 * robot.seconds)
        film.save(path, writer=animation.PillowWriter(fps=round(1 / robot.seconds)), dpi=90)


def _camera(robot: type[Robot]) -> Camera:
    return Camera.beside(np.array(robot.forward, dtype=np.float64))


def _stage(panel: Any, camera: Camera, moments: list[list[Limb]], follow: list[Limb] | None = None) -> None:
    """The floor with lines every half metre, and a window that holds every moment, or that follows one of them."""
    thick = max(radius for _, _, radius, _ in moments[0])
    flat = _ends(camera, [limb for limbs in moments for limb in limbs])
    (left, bottom), (right, top) = flat.min(axis=0) - 2 * thick, flat.max(axis=0) + 1.5 * thick
    if follow is not None:
        centre, half = _ends(camera, follow)[:, 0].mean(), 1.5 * np.ptp(_ends(camera, moments[0])[:, 0])
        left, right = centre - half, centre + half
    panel.set_xlim(left, right)
    panel.set_ylim(bottom, top)
    panel.set_aspect("equal")
    panel.axis("off")
    side = np.cross(camera.across, [0, 0, 1.0])
    for metre in np.arange(np.floor(left), np.ceil(right) + 0.1, 0.5):
        line = camera.flat(np.array([metre * camera.across + s * side for s in (-4.0, 4.0)]))
        panel.plot(*line.T, color="#DDDDDD", linewidth=1.1 if metre % 1 == 0 else 0.5, zorder=0)
    for depth in np.arange(-4, 4.1, 0.5):
        line = camera.flat(np.array([m * camera.across + depth * side for m in (left - 1, right + 1)]))
        panel.plot(*line.T, color="#DDDDDD", linewidth=0.5, zorder=0)


def _ends(camera: Camera, limbs: list[Limb]) -> Array:
    return camera.flat(np.array([end for a, b, _, _ in limbs for end in (a, b)]))


def _body(panel: Any, camera: Camera, limbs: list[Limb], alpha: float = 1.0) -> None:
    """Shadows first, then the limbs from the furthest to the nearest, each as a thick line with a rim."""
    scale = _points_per_unit(panel)
    for a, b, radius, _ in limbs:
        shadow = camera.flat(np.array([a * [1, 1, 0], b * [1, 1, 0]]))
        _line(panel, shadow, 2 * radius * scale, "#000000", 0.10 * alpha, 1)
    for a, b, radius, kind in sorted(limbs, key=lambda limb: float((limb[0] + limb[1]) @ camera.towards)):
        flat = camera.flat(np.array([a, b]))
        _line(panel, flat, 2 * radius * scale + 1.0, EDGE, alpha, 3)
        _line(panel, flat, max(2 * radius * scale - 0.4, 0.6), FILL[kind], alpha, 3)


def _line(panel: Any, flat: Array, width: float, colour: str, alpha: float, layer: int) -> None:
    panel.plot(*flat.T, color=colour, linewidth=width, alpha=alpha, solid_capstyle="round", zorder=layer)


def _points_per_unit(panel: Any) -> float:
    """How many points (1/72 inch) one metre is in the panel."""
    figure = panel.get_figure(root=True)
    figure.draw_without_rendering()
    left, right = panel.get_xlim()
    return float(panel.get_window_extent().width / figure.dpi * 72 / (right - left))
