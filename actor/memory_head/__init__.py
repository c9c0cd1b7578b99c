"""A small policy that reads the memory bank itself: it chooses an action from window and keyframes.

It is for tasks in which every step counts and an action is one of a few, such as those of MIKASA-Base. There is no S2:
the head nominates keyframes, too. Frame stacking and a GRU of the same size are here to compare with.
"""
