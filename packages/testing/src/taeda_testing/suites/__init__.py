"""Behaviour suites: one of each slot, held against the active provider, and one for devices."""

from __future__ import annotations

from importlib import import_module

from taeda_testing.conformance.checks import Check

SLOTS = ("tensor", "autograd", "nn", "optim", "data", "multiprocessing", "profiler")


def checks_of(slot: str) -> list[Check]:
    """The checks of a slot's suite; an empty list for a slot without one."""
    return list(import_module(f"taeda_testing.suites.{slot}").CHECKS) if slot in SLOTS else []
