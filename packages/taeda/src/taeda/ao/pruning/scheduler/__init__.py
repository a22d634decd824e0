"""Schedules of the share that sparsifiers mask."""
