"""The Ant of Design-Bench: four legs of 15 numbers, twelve motors, as fast as possible along x."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..types import Array
from .robot import LEGS, Robot

WORLD = """
<mujoco model="ant">
  <compiler angle="degree" inertiafromgeom="true"/>
  <option integrator="RK4" timestep="0.01"/>
  <default>
    <joint armature="1" damping="1" limited="true"/>
    <geom conaffinity="0" condim="3" density="5.0" friction="1 0.5 0.5" margin="0.01"/>
    <motor ctrllimited="true" ctrlrange="-1 1" gear="150"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="40 40 40" conaffinity="1"/>
    <body name="torso" pos="0 0 1.25">
      <joint name="root" type="free" armature="0" damping="0" limited="false" margin="0.01"/>
      <geom name="torso" type="sphere" size="0.25"/>
      {legs}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
</mujoco>
"""

LEG = """
<body name="leg_{i}" pos="{x} {y} {z}" euler="{a} {b} {c}">
  <geom type="capsule" size="0.08" fromto="0 0 0 {hip_size} {hip_size} 0"/>
  <body name="thigh_{i}" pos="{hip_size} {hip_size} 0">
    <joint name="hip_{i}" axis="-1 1 0" range="{hip_low} {hip_high}"/>
    <joint name="thigh_{i}" axis="0 0 1" range="{thigh_low} {thigh_high}"/>
    <geom type="capsule" size="0.08" fromto="0 0 0 {thigh_size} {thigh_size} 0"/>
    <body name="ankle_{i}" pos="{thigh_size} {thigh_size} 0">
      <joint name="ankle_{i}" axis="-1 1 0" range="{ankle_low} {ankle_high}"/>
      <geom type="capsule" size="0.08" fromto="0 0 0 {ankle_size} {ankle_size} 0"/>
    </body>
  </body>
</body>
"""


class Ant(Robot):
    """Reward per control step: speed along x, minus the cost of control and of contact, plus 1."""

    parts: ClassVar = {
        "x": (-0.1, 0.1), "y": (-0.1, 0.1), "z": (-0.1, 0.1),
        "a": (-180.0, 180.0), "b": (-180.0, 180.0), "c": (-180.0, 180.0),
        "hip_center": (-180.0, 180.0), "hip_range": (5.0, 45.0),
        "thigh_center": (-180.0, 180.0), "thigh_range": (5.0, 45.0),
        "ankle_center": (-180.0, 180.0), "ankle_range": (5.0, 45.0),
        "hip_size": (0.1, 0.4), "thigh_size": (0.1, 0.4), "ankle_size": (0.2, 0.8),
    }  # fmt: skip
    default: ClassVar = np.array(
        [[0, 0, 0, 0, 0, c, 0, 5, 0, 30, 50, 20, 0.2, 0.2, 0.4] for c in (0, 90, 180, -90)], dtype=np.float64
    ).ravel()
    substeps: ClassVar = 5
    seconds: ClassVar = 0.05
    forward: ClassVar = (1.0, 0.0, 0.0)
    control_cost: float = 0.5  # lowered while a controller learns its first steps, never for a score

    def __init__(self, design: Array) -> None:
        super().__init__(design)
        # Every joint begins in the middle half of its range, as near to 0 as that allows. The published environment
        # begins at 0 whatever the range: then the joints' limits throw a body, up to 67 m high, and random search is a
        # contest of catapults.
        self.data.qpos[7:] = np.clip(0.0, self.centre - self.reach / 2, self.centre + self.reach / 2)
        self.mujoco.mj_forward(self.model, self.data)

    def build(self, legs: Array) -> Any:
        bodies, motors = [], []
        for i, numbers in enumerate(legs):
            leg = dict(zip(self.parts, numbers.tolist(), strict=True))
            for joint in ("hip", "thigh", "ankle"):
                centre, reach = leg[f"{joint}_center"], leg[f"{joint}_range"]
                leg[f"{joint}_low"], leg[f"{joint}_high"] = centre - reach, centre + reach
                motors.append(f'<motor joint="{joint}_{i}"/>')
            bodies.append(LEG.format(i=i, **leg))
        return self.mujoco.MjModel.from_xml_string(WORLD.format(legs="".join(bodies), motors="".join(motors)))

    def observe(self) -> Array:
        q, v = self.data.qpos, self.data.qvel
        joints = (q[7:] - self.centre) / self.reach
        return np.concatenate([[self.time], q[2:7], joints, v[:6], 0.1 * v[6:], self.shape])

    def step(self, action: Array) -> tuple[float, bool]:
        before = self.data.qpos[0]
        self.data.ctrl[:] = action
        self.advance()
        self.mujoco.mj_rnePostConstraint(self.model, self.data)
        contact = 0.0005 * np.square(np.clip(self.data.cfrc_ext, -1, 1)).sum()
        speed = (self.data.qpos[0] - before) / self.seconds
        return float(speed - self.control_cost * np.square(action).sum() - contact + 1.0), False

    def frames(self) -> list[tuple[Array, Array, float, str]]:
        self.mujoco.mj_kinematics(self.model, self.data)
        centre = self.data.qpos[:3].copy()
        limbs = [(centre, centre + 1e-3, 0.25, "torso")]
        for geom in range(2, 2 + 3 * LEGS):
            centre, axis = self.data.geom_xpos[geom], self.data.geom_xmat[geom].reshape(3, 3)[:, 2]
            half = self.model.geom_size[geom, 1] * axis
            limbs.append((centre - half, centre + half, 0.08, ("hip", "thigh", "ankle")[(geom - 2) % 3]))
        return limbs
