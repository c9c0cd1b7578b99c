"""RoboMME: sixteen tasks that need memory, played through the benchmark's own environment builder."""
