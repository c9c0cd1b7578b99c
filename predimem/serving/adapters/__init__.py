"""Clients of the server inside other projects' evaluation code.

Each file stands alone: where it runs it needs NumPy, Pillow and openpi-client, and nothing of this package, because
those projects have Python environments of their own.
"""
