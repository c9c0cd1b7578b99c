"""A small policy that reads the memory bank itself: the recent window and the keyframes, and chooses an action from them.

It is for tasks in which every step counts and an action is one of a few, such as those of MIKASA-Base. There is no S2:
the head nominates keyframes, too. Frame stacking and a GRU of the same size are here to compare with.
"""
