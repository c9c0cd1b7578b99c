"""Benchmarks, each in a folder of its own behind the interface of `predimem.envs.benchmark`."""
