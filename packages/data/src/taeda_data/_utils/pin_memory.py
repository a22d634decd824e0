"""Batches in memory from which a device copies without blocking."""

from taeda_data.pinning import pin as pin_memory

__all__ = ["pin_memory"]
