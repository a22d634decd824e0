"""The conformance kit: what a backend or a provider does right, does wrong, lacks, and leaves to the fallback."""

from taeda_testing.conformance.backend import run_backend
from taeda_testing.conformance.isolated import run_backend_isolated
from taeda_testing.conformance.provider import check_module, run_provider
from taeda_testing.conformance.report import Item, Outcome, Problem, Report, Score, Skip

__all__ = [
    "Item",
    "Outcome",
    "Problem",
    "Report",
    "Score",
    "Skip",
    "check_module",
    "run_backend",
    "run_backend_isolated",
    "run_provider",
]
