"""Benchmark suites, each through its own package, presented as `predimem.interfaces.Environment`."""
