"""The arena's Panda: kinematics, motions and the delta-pose controller."""
