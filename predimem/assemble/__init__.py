"""Where concrete parts meet: which planner, policy, memory and suite a name stands for.

Only this package and `cli` name concrete parts. The imports inside the functions keep torch and the
simulator out of processes that need neither.
"""
