"""Scripted skills that know the true state: the oracle low-level policy, and experts for demonstrations."""
