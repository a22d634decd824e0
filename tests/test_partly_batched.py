"""vmap over one operand of an operator while the others are the same for all examples: as one call for each example."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import taeda
from taeda.nn import functional as F
from taeda_testing import all_records
from taeda_testing.record import OpRecord
from taeda_testing.runner import describe, function_of, to_tensors

SEED, SAMPLES, EXAMPLES = 20261127, 4, 3
#: Results that are drawn, or whose memory's order counts beside its elements; shapes that elements decide.
OTHERS = {"normal", "as_strided_scatter", "repeat_interleave", "tensor_split"}


def leaves(made: Any) -> list[Any]:
    if isinstance(made, taeda.Tensor):
        return [made]
    return [leaf for item in made for leaf in leaves(item)] if isinstance(made, (tuple, list)) else []


def calls(record: OpRecord) -> Iterator[tuple[str, Any, Any]]:
    """What a call is, a function of one operand, and a batch of that."""
    dtype = next((name for name in ("float64", "float32") if name in record.dtypes), None)
    if dtype is None or record.creates or record.writes or record.name in OTHERS:
        return
    function = function_of(record)
    rng = np.random.default_rng(SEED + zlib.crc32(record.name.encode()))
    samples = (s for s in record.samples(dtype, rng) if not s.note)
    for sample in itertools.islice(samples, SAMPLES):
        args = [to_tensors(value) for value in sample.args]
        kwargs = {name: to_tensors(value) for name, value in sample.kwargs.items()}
        places = [i for i, value in enumerate(args) if isinstance(value, taeda.Tensor)]
        if len(places) < 2 or any(args[i].numel() > 2000 for i in places):
            continue
        for place in places:
            x = args[place]
            scales = [1.0, 0.75, 0.5] if x.is_floating_point() else [1] * EXAMPLES
            batch = taeda.stack([x * scale if scale != 1 else x for scale in scales])

            def one(value: Any, place: int = place, args: list[Any] = args, kwargs: Any = kwargs) -> Any:
                return function(*args[:place], value, *args[place + 1 :], **kwargs)

            yield f"{record.name}, operand {place} of ({describe(sample)})", one, batch


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_operand_of_each_operator() -> None:
    print("seed", SEED)
    compared, wrong = 0, []
    for record in all_records():
        for where, one, batch in calls(record):
            try:
                expected = [leaves(one(batch[i])) for i in range(EXAMPLES)]
            except (RuntimeError, ValueError):
                continue  # the example has no result: an operand that is scaled is no matrix of its kind any more
            if not expected[0] or not record.values:
                continue
            found = leaves(taeda.vmap(one)(batch))
            for column, result in zip(zip(*expected, strict=True), found, strict=True):
                compared += 1
                try:
                    taeda.testing.assert_close(result, taeda.stack(column), equal_nan=True)
                except AssertionError as error:
                    wrong.append(f"{where}: {error}")
    print(compared, "results")
    assert not wrong, "\n".join(wrong)
    assert compared > 1500


LOSSES = {
    "binary_cross_entropy": lambda a, b, c: F.binary_cross_entropy(a, b, c),
    "binary_cross_entropy, each": lambda a, b, c: F.binary_cross_entropy(a, b, c, reduction="none"),
    "with logits": lambda a, b, c: F.binary_cross_entropy_with_logits(a, b, pos_weight=c),
    "with logits, sum": lambda a, b, c: F.binary_cross_entropy_with_logits(a, b, reduction="sum") * c.sum(),
    "mse": lambda a, b, c: F.mse_loss(a, b) * c.sum(),
    "l1": lambda a, b, c: F.l1_loss(a, b) * c.sum(),
    "huber": lambda a, b, c: F.huber_loss(a, b) * c.sum(),
    "smooth l1, each": lambda a, b, c: F.smooth_l1_loss(a, b, reduction="none") * c,
    "kl": lambda a, b, c: F.kl_div(a, b, reduction="batchmean") * c.sum(),
    "poisson": lambda a, b, c: F.poisson_nll_loss(a, b) * c.sum(),
    "triplet": lambda a, b, c: F.triplet_margin_loss(a, b, c),
    "cross entropy with probabilities": lambda a, b, c: F.cross_entropy(a, b) * c.sum(),
}


@pytest.mark.parametrize(
    "batched", [d for d in itertools.product((0, None), repeat=3) if any(i == 0 for i in d)]
)
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_their_gradients(loss: str, batched: tuple[int | None, ...]) -> None:
    rng = np.random.default_rng(SEED)
    whole = [taeda.from_numpy(rng.uniform(0.05, 0.95, (EXAMPLES, 4, 2))) for _ in range(3)]
    given = [x if dim == 0 else x[0] for x, dim in zip(whole, batched, strict=True)]

    def example(i: int) -> list[Any]:
        return [x if dim is None else x[i] for x, dim in zip(given, batched, strict=True)]

    function = LOSSES[loss]
    gradients = [taeda.func.grad(lambda *args: function(*args).sum(), place) for place in (0, 1)]
    for each in (function, *gradients):
        expected = taeda.stack([each(*example(i)) for i in range(EXAMPLES)])
        taeda.testing.assert_close(taeda.vmap(each, batched)(*given), expected)


def test_weights_of_observations() -> None:
    x, counts = taeda.arange(24.0).reshape(2, 3, 4).sin(), taeda.tensor([[1, 2, 1, 3], [2, 0, 1, 1]])

    def weighted(rows: taeda.Tensor, weights: taeda.Tensor) -> taeda.Tensor:
        return taeda.cov(rows, fweights=weights, aweights=weights.float())

    expected = taeda.stack([weighted(*each) for each in zip(x, counts, strict=True)])
    taeda.testing.assert_close(taeda.func.vmap(weighted)(x, counts), expected)
    one = taeda.func.vmap(weighted, in_dims=(None, 0))(x[0], counts)
    taeda.testing.assert_close(one[0], expected[0])
