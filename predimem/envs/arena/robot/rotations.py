"""Rotation matrices of the gripper. Its frame: z is the approach direction, y the closing direction."""

from __future__ import annotations

import math

import numpy as np
from transforms3d.axangles import axangle2mat
from transforms3d.quaternions import mat2quat

UP = np.array([0.0, 0.0, 1.0])
FLIP = np.diag([-1.0, -1.0, 1.0])  # half a turn about the approach: the same grasp with the fingers swapped


def rotation_vector(rotation: np.ndarray) -> np.ndarray:
    """[3]: axis times angle (rad, at most pi) of a rotation matrix [3, 3]."""
    (_, a, b), (c, _, d), (e, f, _) = rotation.tolist()
    vector = 0.5 * np.array([f - d, b - e, c - a])  # the axis times the angle's sine
    sine, cosine = math.sqrt(vector @ vector), 0.5 * (float(np.trace(rotation)) - 1.0)
    if sine > 1e-6:
        return vector * (math.atan2(sine, cosine) / sine)
    if cosine > 0.0:
        return vector
    return math.pi * mat2quat(rotation)[1:]  # half a turn: the sine says nothing of the axis


def rotation_matrix(vector: np.ndarray) -> np.ndarray:
    """[3, 3]: the inverse of `rotation_vector`."""
    angle = float(np.linalg.norm(vector))
    return np.eye(3) if angle < 1e-9 else axangle2mat(vector / angle, angle)


def angle_between_rad(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.linalg.norm(rotation_vector(first.T @ second)))


def between(start: np.ndarray, end: np.ndarray, share: float) -> np.ndarray:
    """[3, 3]: the rotation at `share` (0 to 1) of the shortest way from start to end."""
    return start @ rotation_matrix(share * rotation_vector(start.T @ end))


def gripper_frame(approach: np.ndarray, closing: np.ndarray) -> np.ndarray:
    """[3, 3]: the gripper's rotation for an approach and a closing direction, which need not be orthogonal."""
    z = np.asarray(approach, float) / np.linalg.norm(approach)
    y = np.asarray(closing, float) - z * (z @ np.asarray(closing, float))
    y /= np.linalg.norm(y)
    return np.stack([np.cross(y, z), y, z], axis=1)


def top_down(yaw_rad: float) -> np.ndarray:
    """[3, 3]: the gripper points down and closes along the direction `yaw_rad` in the table's plane."""
    return gripper_frame(np.array([0.0, 0.0, -1.0]), np.array([np.cos(yaw_rad), np.sin(yaw_rad), 0.0]))


def forward(pitch_rad: float, yaw_rad: float = 0.0) -> np.ndarray:
    """[3, 3]: the gripper points along +x turned by yaw, `pitch_rad` below the horizon, and closes sideways."""
    cos, sin = np.cos(yaw_rad), np.sin(yaw_rad)
    approach = np.array([cos * np.cos(pitch_rad), sin * np.cos(pitch_rad), -np.sin(pitch_rad)])
    return gripper_frame(approach, np.array([-sin, cos, 0.0]))


def nearest(candidates: list[np.ndarray], to: np.ndarray) -> np.ndarray:
    """The candidate rotation that is the smallest turn away from `to`."""
    return min(candidates, key=lambda rotation: angle_between_rad(to, rotation))
