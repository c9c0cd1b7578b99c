"""Episodes from which the planner learns in closed loop: it, or a disturbed truth, drives the scripted skills."""
