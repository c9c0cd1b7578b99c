"""A small planner for one question: what do the earlier sessions that are shown say about the task at hand?"""
