"""Studies what the predictive head does for the planner: trainings with and without it, replayed and played."""
