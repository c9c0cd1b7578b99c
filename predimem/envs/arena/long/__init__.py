"""Long tasks: 12 to 16 stages, several things to remember, a pause of a minute, and somebody who moves things.

A template (`templates`) chooses modules (`drawers`, `containers`, `pours`, `microwave`), and `compose` puts them
together by random numbers. All labels are those of the 26 tasks (`words`), so that a planner that was trained for these
can name every subtask.
"""
