"""The arena: 26 long-horizon memory tasks in ManiSkill."""
