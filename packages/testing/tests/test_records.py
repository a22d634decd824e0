"""Every record under every check on the active provider's CPU."""

import numpy as np
import pytest

from taeda_testing import all_records, record_cases
from taeda_testing.cases import SEED, samples_of, size_of
from taeda_testing.runner import function_of, to_tensors

RECORDS = all_records()


@pytest.mark.parametrize("case", record_cases(RECORDS), ids=str)
def test_record(case):
    print("seed", SEED)
    case.run()


def taken_as_complex(record):
    """Whether an operator takes its real samples as complex numbers."""

    def changed(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(changed, value))
        real = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        return np.asarray(value + 0.25j).astype("complex128") if real else value

    calls = [s for s in samples_of(record, "float64") if size_of(s) and not s.note]
    try:
        for sample in calls:
            args = [to_tensors(changed(value)) for value in sample.args]
            function_of(record)(*args, **{key: to_tensors(v) for key, v in sample.kwargs.items()})
    except (RuntimeError, TypeError, ValueError):
        return False
    return bool(calls)


@pytest.mark.parametrize(
    "name",
    sorted(
        {r.name for r in RECORDS if r.differentiable} - {r.name for r in RECORDS if "complex128" in r.dtypes}
    ),
)
def test_what_takes_complex_says_so(name):
    """Else its complex gradients would be looked at by nobody."""
    assert not all(taken_as_complex(r) for r in RECORDS if r.name == name and "float64" in r.dtypes)
