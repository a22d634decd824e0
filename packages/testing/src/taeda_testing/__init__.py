"""One record per operator, and the runner that drives the records on any device of any tensor provider."""

from taeda_testing.orders import check_orders, special_samples
from taeda_testing.record import ErrorSample, OpRecord, Sample, all_records, find_record
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
    "ErrorSample",
    "Failure",
    "OpRecord",
    "Sample",
    "all_records",
    "check_error",
    "check_forward",
    "check_gradient",
    "check_in_place",
    "check_orders",
    "check_out",
    "check_second_gradient",
    "find_record",
    "special_samples",
]
