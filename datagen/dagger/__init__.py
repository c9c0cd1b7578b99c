"""DAgger data for the planner: it, or a perturbed oracle planner, drives a policy, and every step is labelled."""
