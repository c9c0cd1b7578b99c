"""Evaluation: episodes in worker processes, TSR and CSR with intervals, reports and videos."""
