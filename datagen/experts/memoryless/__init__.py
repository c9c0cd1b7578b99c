"""The memoryless expert: it tells what the scripted skills would do next, from any state of gripper and scene."""
