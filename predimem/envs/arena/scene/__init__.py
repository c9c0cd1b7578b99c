"""The arena as a ManiSkill environment. These modules load the simulator when they are imported."""
