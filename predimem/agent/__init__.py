"""The dual system at run time: S1 in the control loop, S2 beside it, and the baselines they are compared with."""
