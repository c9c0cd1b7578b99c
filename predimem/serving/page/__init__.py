"""The page that people open: what each robot remembers, live and afterwards."""
