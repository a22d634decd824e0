"""One record per operator, and the runner that drives the records on any device of any tensor provider."""

from taeda_testing.cases import Case, RecordCheck, record_cases
from taeda_testing.in_place_gradient import check_in_place_gradient, fits_in_place
from taeda_testing.orders import check_orders, special_samples
from taeda_testing.ownership import check_hooks_stay, check_ownership
from taeda_testing.record import ErrorSample, OpRecord, Sample, add_records, all_records, find_record
from taeda_testing.runner import (
    Failure,
    check_error,
    check_forward,
    check_gradient,
    check_in_place,
    check_out,
)
from taeda_testing.second import check_second_gradient

__version__ = "0.1.0"

__all__ = [
    "Case",
    "ErrorSample",
    "Failure",
    "OpRecord",
    "RecordCheck",
    "Sample",
    "add_records",
    "all_records",
    "check_error",
    "check_forward",
    "check_gradient",
    "check_hooks_stay",
    "check_in_place",
    "check_in_place_gradient",
    "check_orders",
    "check_out",
    "check_ownership",
    "check_second_gradient",
    "find_record",
    "fits_in_place",
    "record_cases",
    "special_samples",
]
