"""Carrying steps out from perception: do, look, do again."""
