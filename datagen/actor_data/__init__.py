"""Data for the actor: frames and short episodes in which the memoryless expert labels every state."""
