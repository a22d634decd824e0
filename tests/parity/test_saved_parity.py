"""Arguments and results that are overwritten between forward and backward: the gradient is right, or refused where
PyTorch refuses it too."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import taeda

sys.path.insert(0, str(Path(__file__).parent))
from op_agreement import flat
from op_checks import label, sparse, uneven
from op_functions import SEED, Missing, NoCounterpart, counterpart, function_of
from op_samples import RANDOM, convert, op_records, theirs

SAMPLES = 3
MOST_ARGUMENTS = 5
RESULTS = -1  # in the place of an argument's number

#: Why a gradient is refused that PyTorch gives.
KEPT = {
    "PyTorch takes it apart into steps, of which it keeps results": [
        "masked.cumprod", "masked.cumsum", "masked.logaddexp", "masked.prod", "masked.std", "masked.var",
        "nn.functional.linear_cross_entropy.chunked",
    ],
    "of three dimensions PyTorch keeps the weights, where the fused kernel keeps its result": [
        "nn.functional.scaled_dot_product_attention",
    ],
    "PyTorch's own gradient is wrong": ["kron"],
    "called by name it is a reciprocal times a tensor in PyTorch": ["__rdiv__"],
    "its result, of which the derivative is a function": ["erfinv"],
    "several elements share one place": ["as_strided", "unfold"],
}  # fmt: skip
EXPLAINED = {name for names in KEPT.values() for name in names}
#: Records of which nothing is compared, with the reason.
NOT_COMPARED = {
    "as_strided.partial_views": "its strides reach beyond the copies that stand for its arguments",
    "chalf": "complex32 is not there",
}


class Program:
    """One call of one library, with leaves behind its arguments."""

    def __init__(self, library: Any, function: Callable, given: list[Any], keywords: Any, leaves: list[Any]):
        self.library, self.function, self.leaves = library, function, leaves
        self.given, self.keywords = given, keywords

    def outcome(self, overwritten: int | None, finish: Callable, weigh: Callable) -> tuple[str, Any]:
        """How it ends: "refused" when the gradient is, "given" with the gradients."""
        lib, count, copies = self.library, itertools.count(), []

        def copied(value: Any) -> Any:
            if isinstance(value, lib.Tensor) and next(count) == overwritten:
                copies.append(value.clone())
                return copies[0]
            if isinstance(value, dict):
                return {key: copied(item) for key, item in value.items()}
            listed = isinstance(value, (tuple, list)) and not isinstance(value, lib.Size)
            return type(value)(copied(item) for item in value) if listed else value

        given, keywords = copied(self.given), copied(self.keywords)
        lib.manual_seed(SEED)
        made = finish(self.function(*given, **keywords))
        outputs = [t for t in flat(made) if isinstance(t, lib.Tensor) and t.requires_grad]
        weights = [weigh(i, t.detach()) for i, t in enumerate(outputs)]
        if not outputs or (overwritten not in (None, RESULTS) and not copies):
            return "nothing", None
        try:
            with lib.no_grad():
                for t in outputs if overwritten == RESULTS else copies:
                    t.logical_not_() if t.dtype == lib.bool else t.mul_(2)
        except RuntimeError:
            return "not written", None
        try:
            found = lib.autograd.grad(outputs, self.leaves, weights, allow_unused=True)
        except RuntimeError as error:
            return "refused", str(error)
        return "given", found


def alike(found: Any, expected: Any) -> bool:
    for a, b in zip(found, expected, strict=True):
        if a is None or b is None:
            if a is not b and np.any((b if a is None else a).numpy()):
                return False
        elif not np.allclose(
            *(t.detach().resolve_conj().resolve_neg().numpy() for t in (a, b)), rtol=1e-6, equal_nan=True
        ):
            return False
    return True


def verdicts(program: Program, finish: Callable, weigh: Callable) -> Iterator[str]:
    """For the results and each argument: whether a gradient is right, wrong or refused when they were overwritten."""
    ends, right = program.outcome(None, finish, weigh)
    for place in range(RESULTS, MOST_ARGUMENTS) if ends == "given" else ():
        ends, found = program.outcome(place, finish, weigh)
        yield ends if ends != "given" else "right" if alike(found, right) else "wrong"


def my_weights(i: int, t: Any) -> Any:
    return convert(uneven(i, torch.empty(tuple(t.shape), dtype=torch.float64)).to(torch.float64), [])


def compared(record: Any) -> Iterator[tuple[str, str]]:
    """Verdicts of both libraries, PyTorch's first."""
    torch.manual_seed(SEED)
    drawn = record.sample_inputs("cpu", torch.float64, requires_grad=True)
    for sample in itertools.islice(drawn, SAMPLES):
        if sparse(sample):
            continue
        both = []
        finish = sample.output_process_fn_grad
        for lib, made_of, function in ((torch, theirs, record.op), (taeda, convert, function_of(record))):
            leaves: list[Any] = []
            given = [made_of(v, leaves) for v in (sample.input, *sample.args)]
            both.append(Program(lib, function, given, made_of(dict(sample.kwargs), leaves), leaves))
        wanted = list(verdicts(both[0], finish, uneven))
        found = list(verdicts(both[1], counterpart(finish), my_weights)) if wanted else []
        yield from zip(wanted, found, strict=False)


@pytest.mark.filterwarnings("ignore")
def test_gradients_after_arguments_and_results_were_overwritten() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    apart: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    not_compared: dict[str, str] = {}
    for record in op_records():
        name = label(record)
        if torch.float64 not in record.supported_backward_dtypes("cpu") or not record.supports_autograd:
            continue
        if record.name in RANDOM or ("dropout" in name and "without" not in name):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pairs = list(compared(record))
        except (Missing, NoCounterpart):
            continue
        except (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError) as error:
            not_compared[name] = f"{type(error).__name__}: {error}"
            continue
        counts.update(pairs)
        for pair in pairs:
            apart[pair].add(name)
    print(dict(counts))
    assert counts["right", "right"] > 1500 and counts["refused", "refused"] > 500
    assert not_compared.keys() == NOT_COMPARED.keys(), not_compared
    assert not {n for (a, b), names in apart.items() if b == "wrong" and a != "wrong" for n in names}
    refused = {
        n
        for (a, b), names in apart.items()
        if a == "right" and b in ("refused", "not written")
        for n in names
    }
    assert refused <= EXPLAINED, sorted(refused - EXPLAINED)
