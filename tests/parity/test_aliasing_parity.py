"""Which results share memory with an argument, beside PyTorch, on PyTorch's own samples."""

from __future__ import annotations

import itertools
import sys
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

sys.path.insert(0, str(Path(__file__).parent))
from op_functions import function_of, known  # noqa: E402
from op_samples import RANDOM, convert, op_records, tensors, theirs  # noqa: E402

SEED = 20250607
SAMPLES = 8
# Sparse operators are held to theirs in tests/test_sparse.py.
RECORDS = [r for r in op_records() if known(r) and r.name not in RANDOM and not r.name.startswith("sparse.")]
# Here a real tensor is copied where PyTorch gives the tensor itself, or the other way round.
DIFFERENT = {
    "conj": "the conjugate of real numbers is a copy",
    "histogramdd": "bounds that are given are given back in memory of their own",
    "masked.prod": "the product of a number is a copy",
}


def shared(function, sample, change):
    """For each result whether it lies in the memory of an argument."""
    given = [change(value, []) for value in (sample.input, *sample.args, dict(sample.kwargs))]
    results = function(*given[:-1], **given[-1])
    places = {
        t.untyped_storage().data_ptr() for t in tensors([*given[:-1], *given[-1].values()]) if t.numel()
    }
    return [t.numel() > 0 and t.untyped_storage().data_ptr() in places for t in tensors(results)]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name + r.variant_test_name)
def test_results_share_memory_as_in_pytorch(record):
    torch.manual_seed(SEED)
    differences, compared = [], 0
    samples = (
        record.sample_inputs("cpu", torch.float64) if torch.float64 in record.supported_dtypes("cpu") else ()
    )
    for number, sample in enumerate(itertools.islice(samples, SAMPLES)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected, found = (
                    shared(record.op, sample, theirs),
                    shared(function_of(record), sample, convert),
                )
        except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
            continue  # what is refused is compared with the values
        compared += 1
        if found != expected:
            differences.append((number, found, expected))
    print("compared", compared)
    if record.name in DIFFERENT:
        assert differences, f"listed as different ({DIFFERENT[record.name]}), but agrees"
    else:
        assert not differences, f"(sample, shared here, shared there): {differences[:3]}"
