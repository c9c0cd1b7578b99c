"""What no demonstration shows: the arena's tasks in scenes and words that differ from those of the training.

`conditions` names the kinds of difference, one file each; `setting` is what they change.
"""
