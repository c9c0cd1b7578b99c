"""Practice of the planner in real physics."""
