"""Operators whose work is kept for later: what is saved is asked for once, and graphs serve other values.

Every record goes through: hooks of saved tensors, checkpoints, graphs of operators, and fake tensors in their mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterator
from typing import Any

import numpy as np
import pytest

import taeda
from taeda._subclasses import FakeTensorMode
from taeda.fx.experimental.proxy_tensor import make_fx
from taeda.utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from taeda.utils.checkpoint import checkpoint
from taeda_testing.cases import samples_of, size_of
from taeda_testing.record import OpRecord, Sample, all_records
from taeda_testing.runner import differentiated, function_of, to_tensors

MOST_SAMPLES = 6
LARGEST = 20_000
# Whose results have other shapes, or are refused, for other values.
OF_VALUES = {
    "allclose": "is refused",
    "equal": "is refused",
    "segment_reduce": "lengths are read, which is refused",
    "tensor_split": "places are read, which is refused",
    "ctc_loss": "lengths are read, which is refused",
    "unique_dim": "as many rows as differ",
    "unique_consecutive": "as many as differ",
}  # fmt: skip
# Of which meta tensors do not say shapes, for want of elements.
WITHOUT_SHAPES = frozenset({
    "allclose", "argwhere", "bincount", "ctc_loss", "equal", "histogram", "histogramdd", "masked_select", "nonzero",
    "one_hot", "repeat_interleave", "tensor_split", "unique", "unique_all", "unique_consecutive",
    "unique_consecutive_all", "unique_dim", "unique_dim_consecutive", "where",
})  # fmt: skip

FAMILIES: dict[str, list[OpRecord]] = {}
for record in all_records():
    if not record.creates and record.values:
        FAMILIES.setdefault(record.family, []).append(record)


class Call:
    """A record's function with a sample's arguments, as a function of the tensors among them."""

    def __init__(self, record: OpRecord, sample: Sample) -> None:
        self._function = function_of(record)
        given = (
            [to_tensors(value) for value in sample.args],
            {k: to_tensors(v) for k, v in sample.kwargs.items()},
        )
        self._leaves, self._spec = tree_flatten(given)
        self._places = [i for i, leaf in enumerate(self._leaves) if isinstance(leaf, taeda.Tensor)]

    @property
    def tensors(self) -> list[Any]:
        return [self._leaves[place].clone() for place in self._places]

    def other_tensors(self) -> list[Any]:
        """The same shapes and layouts with the elements moved along by one."""
        return [taeda.empty_like(t).copy_(t.reshape(-1).roll(1).reshape(t.shape)) for t in self.tensors]

    def __call__(self, *tensors: Any) -> Any:
        leaves = list(self._leaves)
        for place, value in zip(self._places, tensors, strict=True):
            leaves[place] = value
        args, kwargs = tree_unflatten(leaves, self._spec)
        taeda.manual_seed(0)
        return self._function(*args, **kwargs)


def calls(record: OpRecord) -> Iterator[tuple[str, Call]]:
    for dtype in [d for d in ("float64", "complex128", "int64", "bool") if d in record.dtypes][:2]:
        for sample in itertools.islice(samples_of(record, dtype), MOST_SAMPLES):
            if size_of(sample) <= LARGEST:
                call = Call(record, sample)
                if call.tensors and all(t.layout == taeda.strided for t in call.tensors):
                    yield f"{record.name} {dtype}", call


def results(value: Any) -> list[Any]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, taeda.Tensor)]


def differ(found: Any, expected: Any) -> str:
    pairs = list(itertools.zip_longest(results(found), results(expected)))
    for left, right in pairs:
        if (left.dtype, left.shape) != (right.dtype, right.shape):
            return f"{left.dtype} {tuple(left.shape)}, expected {right.dtype} {tuple(right.shape)}"
        if left.layout == taeda.strided and not np.allclose(
            left.detach().resolve_conj().numpy(), right.detach().resolve_conj().numpy(), equal_nan=True
        ):
            return f"{left.tolist()}, expected {right.tolist()}"
    return ""


def gradients(call: Any, tensors: list[Any]) -> list[Any]:
    outs = [out for out in results(call(*tensors)) if out.requires_grad]
    wanted = [t for t in tensors if t.requires_grad]
    if not outs or not wanted:
        return []
    found = taeda.autograd.grad(outs, wanted, [taeda.ones_like(out) for out in outs], allow_unused=True)
    return [g for g in found if g is not None]


def differentiable(record: OpRecord, sample: Sample) -> list[bool]:
    """Which of a sample's tensors gradients are taken of."""
    flow = [place.of(sample.args) for place in differentiated(record, sample)]
    arrays = [
        leaf for leaf in tree_leaves((list(sample.args), sample.kwargs)) if isinstance(leaf, np.ndarray)
    ]
    return [any(array is other for other in flow) for array in arrays]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_saved_is_asked_for_once(family: str) -> None:
    wrong, checked = [], 0
    for record in FAMILIES[family]:
        for dtype in set(record.differentiated) & {"float64", "complex128"}:
            for sample in itertools.islice(samples_of(record, dtype), MOST_SAMPLES):
                if sample.note or size_of(sample) > LARGEST or record.writes:
                    continue
                call = Call(record, sample)
                tensors = call.tensors
                for tensor, flows in zip(tensors, differentiable(record, sample), strict=True):
                    tensor.requires_grad_(flows)
                if not any(tensor.requires_grad for tensor in tensors):
                    continue
                counts: list[int] = []

                def pack(value: Any, counts: list[int] = counts) -> tuple[int, Any]:
                    counts.append(0)
                    return len(counts) - 1, value

                def unpack(packed: tuple[int, Any], counts: list[int] = counts) -> Any:
                    counts[packed[0]] += 1
                    return packed[1]

                expected = gradients(call, tensors)
                with taeda.autograd.graph.saved_tensors_hooks(pack, unpack):
                    hooked = gradients(call, tensors)
                again = gradients(lambda *t, c=call: checkpoint(c, *t, use_reentrant=False), tensors)
                checked += 1
                text = differ(hooked, expected) or differ(again, expected)
                if text or max(counts, default=0) > 1:
                    wrong.append(f"{record.name} {dtype}: {text or f'asked for {counts} times'}")
                    break
    differentiable_ones = [
        record.name for record in FAMILIES[family] if record.differentiated and not record.writes
    ]
    assert checked >= len(differentiable_ones)
    assert wrong == []


def complaints(family: str, left_out: Container[str], check: Callable[[Call], str]) -> list[str]:
    """What a check says against the records of a family: the first word of each."""
    found = []
    for record in FAMILIES[family]:
        for name, call in calls(record) if record.name not in left_out else ():
            try:
                text = check(call)
            except Exception as error:
                text = f"{type(error).__name__}: {str(error)[:200]}"
            if text:
                found.append(f"{name}: {text}")
                break
    return found


def differs_as_a_graph(call: Call) -> str:
    try:
        expected = call(*call.other_tensors())
    except (RuntimeError, IndexError, ValueError):
        return ""  # other values, which are no arguments of it
    return differ(make_fx(call)(*call.tensors)(*call.other_tensors()), expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_graphs_serve_other_values(family: str) -> None:
    assert complaints(family, OF_VALUES, differs_as_a_graph) == []


def forms(value: Any) -> list[Any]:
    return [(result.shape, result.dtype, result.stride()) for result in results(value)]


def has_another_form_when_fake(call: Call) -> str:
    tensors, expected = call.tensors, forms(call(*call.tensors))
    with FakeTensorMode() as mode:
        found = forms(call(*map(mode.from_tensor, tensors)))
    return "" if found == expected else f"{found}, expected {expected}"


@pytest.mark.parametrize("family", FAMILIES)
def test_fake_tensors_have_the_form_of_real_ones(family: str) -> None:
    assert complaints(family, WITHOUT_SHAPES, has_another_form_when_fake) == []


@pytest.mark.parametrize(
    "reads",
    [
        lambda x: x * x.sum().item(),
        lambda x: x * float(x.sum()),
        lambda x: x + 1 if x.sum() > 0 else x,
        lambda x: x * x.tolist()[0],
        lambda x: x * taeda.rand(()).item(),
        lambda x: x * bool(taeda.allclose(x, x)),
        lambda x: taeda.segment_reduce(x, "sum", lengths=x.long()),
        lambda x: taeda.tensor_split(x, x.long())[0],
        lambda x: taeda.nn.functional.ctc_loss(
            x.expand(3, 1, 2), taeda.tensor([[1]]), x.long()[1:], taeda.tensor([1])
        ),
    ],
)
def test_elements_that_a_graph_would_keep_are_refused(reads: Any) -> None:
    x = taeda.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(reads)(x)
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        taeda._functorch.aot_autograd.aot_function(reads, fw_compiler=lambda graph, _: graph)(x)


def test_elements_of_constants_are_read() -> None:
    x, constant = taeda.tensor([1.0, 2.0]), taeda.tensor(3.0)
    graph = make_fx(lambda x: x * constant.item() + taeda.arange(3)[2].item())(x)
    assert graph(x + 1).tolist() == [8.0, 11.0]


def test_real_tensors_are_asked_about_under_a_fake_mode() -> None:
    real = taeda.arange(6.0).reshape(2, 3)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(real)
        assert (real.stride(), real.dim(), real.size(1), len(real), real.tolist()[1]) == (
            (3, 1), 2, 3, 2, [3.0, 4.0, 5.0],
        )  # fmt: skip
        assert str(real).startswith("tensor([[") and fake.stride() == (3, 1)
        there = taeda.empty(2, device="cuda")
        assert (there.get_device(), there.type()) == (0, "torch.cuda.FloatTensor")
        with pytest.raises(AssertionError, match="expected fake tensors"):
            real + 1
