"""PrediMem: memory for robot policies. Importing this package does not import torch."""

__version__ = "0.1.0"
