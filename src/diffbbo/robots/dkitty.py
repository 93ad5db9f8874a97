"""The D'Kitty of Design-Bench: four legs of 14 numbers, twelve position motors, to a goal 2 m ahead, upright."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np

from ..assets import load_bytes
from ..types import Array
from .robot import Robot

FILE, SHA256 = "dkitty.xml", "34bcd065829f32eb3cffbf61f3abeeba9b0852b0daa0c434c67cb666dbd25067"
PI = np.pi
NAMES = ("FR1", "FL2", "BL3", "BR4")  # the published order of the legs
GOAL = np.array([0.0, 2.0])
UPRIGHT = 0.9  # cosine of the torso's tilt below which it has fallen


@cache
def _spec_text() -> str:
    return load_bytes(FILE, SHA256).decode()


class DKitty(Robot):
    """Reward per control step: upright, near the goal and heading for it; a fall costs 500 and ends the episode."""

    parts: ClassVar = {
        "x": (-0.09, 0.09), "y": (-0.122, 0.122), "z": (0.0, 0.0),
        "a": (-PI, PI), "b": (-PI, PI), "c": (-PI, PI),
        "hip_center": (-PI, PI), "hip_range": (PI / 35, PI / 4),
        "thigh_center": (-PI, PI), "thigh_range": (PI / 35, PI / 4),
        "ankle_center": (-PI, PI), "ankle_range": (PI / 35, PI / 2),
        "thigh_size": (0.0965, 0.1365), "ankle_size": (0.0945, 0.1345),
    }  # fmt: skip
    default: ClassVar = np.array(
        [
            [x, y, 0, 0, b, 0, hip, 0.3895, PI / 4, PI / 4, -1.0, 1.0, 0.0965, 0.0945]
            for x, y, b, hip in (
                (0.09, 0.122, -3.14, -0.1105),
                (-0.09, 0.122, 3.14, 0.1105),
                (-0.09, -0.122, 3.14, 0.1105),
                (0.09, -0.122, -3.14, -0.1105),
            )
        ]
    ).ravel()
    substeps: ClassVar = 40
    seconds: ClassVar = 0.1
    forward: ClassVar = (0.0, 1.0, 0.0)
    fall_cost: float = 500.0  # lowered while a controller learns its first steps, never for a score

    def __init__(self, design: Array) -> None:
        super().__init__(design)
        self.torso = self.model.body("kitty_frame").id
        # Standing: every joint at 0, or at the limit nearest to it.
        self.data.qpos[6:] = np.clip(0, self.centre - self.reach, self.centre + self.reach)
        self.mujoco.mj_forward(self.model, self.data)

    def build(self, legs: Array) -> Any:
        spec = self.mujoco.MjSpec.from_string(_spec_text())
        for name, numbers in zip(NAMES, legs, strict=True):
            leg = dict(zip(self.parts, numbers.tolist(), strict=True))
            number = name[2]
            hip = spec.body(f"A:{name}0")
            hip.pos = [leg["x"], leg["y"], leg["z"]]
            self.mujoco.mju_euler2Quat(hip.quat, np.array([leg["a"], leg["b"], leg["c"]]), "xyz")
            spec.body(f"A:{name}1").pos = [0, 0, leg["thigh_size"]]
            spec.body(f"A:{name}2").pos = [0, 0, leg["ankle_size"]]
            for k, joint in enumerate(("hip", "thigh", "ankle")):
                centre, reach = leg[f"{joint}_center"], leg[f"{joint}_range"]
                limits = [centre - reach, centre + reach]
                spec.joint(f"A:{name[:2]}J{number}{k}").range = limits
                spec.actuator(f"A:{name[:2]}J{number}{k}").ctrlrange = limits
        return spec.compile()

    def upright(self) -> float:
        return float(self.data.xmat[self.torso, 8])

    def to_goal(self) -> Array:
        return np.asarray(GOAL - self.data.qpos[:2])

    def heading(self) -> float:
        """Cosine between where the torso points (its y axis) and where the goal is."""
        points, wanted = self.data.xmat[self.torso, [1, 4]], self.to_goal()
        length = np.linalg.norm(points) * np.linalg.norm(wanted)
        return float(points @ wanted / length) if length > 0 else 0.0

    def observe(self) -> Array:
        q, v = self.data.qpos, self.data.qvel
        joints = (q[6:] - self.centre) / self.reach
        senses = [self.upright(), self.heading()]
        return np.concatenate(
            [[self.time], q[:6], joints, v[:6], 0.1 * v[6:], self.last_action, senses, self.to_goal(), self.shape]
        )

    def step(self, action: Array) -> tuple[float, bool]:
        joints = self.data.qpos[6:]
        furthest = PI * self.seconds  # a target may not ask for more than pi rad/s
        wanted = self.centre + action * self.reach
        self.data.ctrl[:] = joints + np.clip(wanted - joints, -furthest, furthest)
        self.last_action = action
        self.advance()
        self.mujoco.mj_kinematics(self.model, self.data)
        upright, heading = self.upright(), self.heading()
        distance = float(np.linalg.norm(self.to_goal()))
        near, ahead = distance < 0.5, heading > 0.9
        fallen = upright < UPRIGHT
        reward = (upright - UPRIGHT) / (1 - UPRIGHT) - self.fall_cost * fallen - 4 * distance + 20 * (heading - 0.9)
        return reward + 5 * (near + ahead) + 10 * (near and ahead), fallen

    def frames(self) -> list[tuple[Array, Array, float, str]]:
        self.mujoco.mj_kinematics(self.model, self.data)
        at = {name: self.data.body(name).xpos.copy() for name in (f"A:{leg}{k}" for leg in NAMES for k in range(3))}
        limbs = []
        for leg in NAMES:
            foot_body = self.data.body(f"A:{leg}2")
            foot = foot_body.xpos + 0.1 * foot_body.xmat.reshape(3, 3)[:, 2]
            limbs.append((at[f"A:{leg}0"], at[f"A:{leg}1"], 0.018, "hip"))
            limbs.append((at[f"A:{leg}1"], at[f"A:{leg}2"], 0.018, "thigh"))
            limbs.append((at[f"A:{leg}2"], foot, 0.012, "ankle"))
        frame = self.data.xmat[self.torso].reshape(3, 3)
        centre = self.data.xpos[self.torso]
        ahead = 0.122 * frame[:, 1]
        return [(centre - ahead, centre + ahead, 0.06, "torso"), *limbs]
