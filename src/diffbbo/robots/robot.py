"""A robot whose body is a design: built, simulated for one episode of 100 control steps, scored by its reward."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np

from ..types import Array, need

STEPS = 100  # control steps of an episode
LEGS = 4


class Policy(Protocol):
    """Maps an observation `(k,)` to an action `(12,)` in [-1, 1]."""

    def __call__(self, observation: Array) -> Array: ...


class Unstable(Exception):
    """The body cannot be built, or the simulation of it blew up."""


def _ignore(message: str) -> None:
    """Warnings are counted in the data, where `advance` looks."""


class Robot:
    """One body in its simulator. A subclass says how a design becomes a model, and what a step is worth.

    A design is four legs of equal parts, `(4 k,)` in the units of the published environment. Everything is float64.
    """

    parts: ClassVar[dict[str, tuple[float, float]]]  # of one leg: name to lowest and highest value
    default: ClassVar[Array]  # the published hand-made design
    substeps: ClassVar[int]
    seconds: ClassVar[float]  # per control step
    forward: ClassVar[tuple[float, float, float]]  # the way it should go

    def __init__(self, design: Array) -> None:
        self.mujoco = need("mujoco", "robots", "Simulating a robot")
        # Otherwise every unstable body would leave a line in a MUJOCO_LOG.TXT in the user's folder.
        self.mujoco.set_mju_user_warning(_ignore)
        self.design = np.asarray(design, dtype=np.float64)
        try:
            self.model = self.build(self.design.reshape(LEGS, -1))
        except ValueError as error:  # MuJoCo's compiler refuses the body
            raise Unstable(str(error)) from error
        self.data = self.mujoco.MjData(self.model)
        kinds = self.mujoco.mjtWarning
        self._alarms = [int(getattr(kinds, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC", "CTRL")]
        limits = self.model.jnt_range[-12:]
        self.centre, self.reach = limits.mean(axis=1), np.ptp(limits, axis=1) / 2
        self.shape = 2 * self.unit(self.design) - 1
        self.step_number = 0
        self.last_action = np.zeros(12)
        self.mujoco.mj_forward(self.model, self.data)

    @classmethod
    def bounds(cls) -> tuple[Array, Array]:
        low, high = np.array(list(cls.parts.values()), dtype=np.float64).T
        return np.tile(low, LEGS), np.tile(high, LEGS)

    @classmethod
    def unit(cls, design: Array) -> Array:
        """A design with every number scaled to [0, 1]; a part that cannot vary becomes 1/2."""
        low, high = cls.bounds()
        free = high > low
        return np.where(free, (design - low) / np.where(free, high - low, 1.0), 0.5)

    @classmethod
    def from_unit(cls, unit: Array) -> Array:
        low, high = cls.bounds()
        return np.where(high > low, low + np.clip(unit, 0, 1) * (high - low), low)

    def build(self, legs: Array) -> Any:
        """The simulator's model of the body `legs` `(4, k)`."""
        raise NotImplementedError

    def observe(self) -> Array:
        """What the controller sees: first the time, then the state, at last the design."""
        raise NotImplementedError

    def step(self, action: Array) -> tuple[float, bool]:
        """One control step: its reward, and whether the episode is over."""
        raise NotImplementedError

    def advance(self) -> None:
        """Let the simulator run for one control step; raises if it blows up."""
        self.mujoco.mj_step(self.model, self.data, self.substeps)
        self.step_number += 1
        # MuJoCo resets a state that is not finite or too fast and counts a warning instead of stopping.
        if self.data.warning.number[self._alarms].any() or not np.isfinite(self.data.qpos).all():
            raise Unstable("the simulation became unstable")

    @property
    def time(self) -> float:
        """Simulated seconds since the start."""
        return self.step_number * self.seconds

    def frames(self) -> list[tuple[Array, Array, float, str]]:
        """Every limb now, as (one end, other end, radius, kind), for drawing: torso, hip, thigh or ankle."""
        raise NotImplementedError


def play(robot: Robot, policy: Policy, watch: Any = None) -> float:
    """The return of one episode. `watch(robot)` is called before the first and after every control step."""
    total = 0.0
    if watch is not None:
        watch(robot)
    for _ in range(STEPS):
        reward, done = robot.step(policy(robot.observe()))
        total += reward
        if watch is not None:
            watch(robot)
        if done:
            break
    return total
