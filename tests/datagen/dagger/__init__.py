"""DAgger data for the planner, in real physics."""
