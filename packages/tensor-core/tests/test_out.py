"""The out= forms of operators that are made of others: results written, cast, resized, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_testing.record import OpRecord, Sample, all_records, find_record
from taeda_testing.runner import function_of, to_tensors

X = taeda.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])


def call(record: OpRecord, sample: Sample, **out: Any) -> Any:
    kwargs = {name: to_tensors(value) for name, value in sample.kwargs.items()}
    return function_of(record)(*map(to_tensors, sample.args), **kwargs, **out)


def tensors(result: object) -> tuple[taeda.Tensor, ...]:
    return (result,) if isinstance(result, taeda.Tensor) else tuple(result)


def samples(record: OpRecord) -> list[Sample]:
    """Calls that take out=: the first few in one dtype, since what they compute is compared elsewhere."""
    dtype = "float32" if "float32" in record.dtypes else record.dtypes[0]
    return [s for s in list(record.samples(dtype, np.random.default_rng(0)))[:6] if takes_out(record, s)]


def takes_out(record: OpRecord, sample: Sample) -> bool:
    result = call(record, sample)
    if not isinstance(result, taeda.Tensor | tuple | list):
        return False
    try:
        call(record, sample, out=result)
    except TypeError as error:
        if (
            "unexpected keyword" in str(error)
            or "no signature fits" in str(error)
            or "as_tuple" in str(error)
        ):
            return False
        raise
    return True


WITH_OUT = [r for r in all_records() if r.values and not r.creates and samples(r)]


def test_most_operators_take_out():
    assert len(WITH_OUT) > 350


@pytest.mark.parametrize("record", WITH_OUT, ids=lambda record: record.title)
def test_a_result_is_written_to_out_of_any_size_and_layout(record):
    for sample in samples(record):
        result = call(record, sample)
        expected = tensors(result)
        right = [taeda.empty_like(t) for t in expected]
        empty = [taeda.empty(0, dtype=t.dtype) for t in expected]
        strided = [
            taeda.empty((*t.shape, 2), dtype=t.dtype)[..., 0] if t.dim() else taeda.empty((), dtype=t.dtype)
            for t in expected
        ]
        for targets in (right, empty, strided):
            given = call(record, sample, out=targets[0] if isinstance(result, taeda.Tensor) else targets)
            assert given is None or all(a is b for a, b in zip(tensors(given), targets, strict=True))
            for target, t in zip(targets, expected, strict=True):
                assert (target.dtype, target.shape) == (t.dtype, t.shape)
                # Sums may be taken in another order: what they lose is a part of the largest.
                off = 1e-6 * max(1.0, float(t.abs().max()) if t.numel() and t.is_floating_point() else 1.0)
                np.testing.assert_allclose(target.numpy(), t.numpy(), rtol=1e-5, atol=off)


def test_results_are_cast_where_the_kind_of_number_allows_it():
    target = taeda.empty(2, 3, dtype=taeda.float64)
    assert taeda.equal(taeda.add(X, 1, out=target), (X + 1).to(taeda.float64))
    with pytest.raises(RuntimeError, match="int64"):
        taeda.add(X, 1, out=taeda.empty(2, 3, dtype=taeda.int64))


@pytest.mark.parametrize(
    "name", ["diag", "index_add", "kthvalue", "masked_select", "scatter", "take", "inner"]
)
def test_operators_that_cast_nothing_refuse_another_dtype(name):
    record = find_record(name)
    sample = next(s for s in samples(record) if tensors(call(record, s))[0].numel())
    targets = [taeda.full_like(t, 7, dtype=taeda.float64) for t in tensors(call(record, sample))]
    with pytest.raises(RuntimeError, match="float64"):
        call(record, sample, out=targets[0] if len(targets) == 1 else tuple(targets))
    assert all(bool((t == 7).all()) for t in targets)


def test_sums_are_made_in_the_dtype_of_out():
    whole = taeda.tensor([200, 100], dtype=taeda.uint8)
    assert taeda.sum(whole, out=taeda.empty((), dtype=taeda.float32)).item() == 300.0
    assert taeda.cumsum(whole, 0, out=taeda.empty(2, dtype=taeda.uint8)).tolist() == [200, 44]


FACTORIES = {
    "arange": (lambda **out: taeda.arange(0, 6, 2, **out), [0, 2, 4]),
    "eye": (lambda **out: taeda.eye(2, **out), [[1, 0], [0, 1]]),
    "full": (lambda **out: taeda.full((2,), 3, **out), [3, 3]),
    "linspace": (lambda **out: taeda.linspace(0, 4, 3, **out), [0, 2, 4]),
    "logspace": (lambda **out: taeda.logspace(0, 2, 3, **out), [1, 10, 100]),
    "ones": (lambda **out: taeda.ones(2, **out), [1, 1]),
    "zeros": (lambda **out: taeda.zeros((1, 2), **out), [[0, 0]]),
}


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("dtype", [taeda.int64, taeda.float64, taeda.complex64])
def test_a_factory_takes_the_dtype_of_out(name, dtype):
    make, expected = FACTORIES[name]
    out = taeda.empty(0, dtype=dtype)
    assert make(out=out) is out
    assert out.dtype == dtype
    assert out.tolist() == expected
    with pytest.raises(RuntimeError, match="int16"):
        make(out=out, dtype=taeda.int16)
    with pytest.raises(RuntimeError, match="requires_grad"):
        make(out=out, requires_grad=True)


@pytest.mark.parametrize("make", ["rand", "randn"])
def test_random_factories_fill_out(make):
    out = taeda.zeros(64, dtype=taeda.float64)
    getattr(taeda, make)(64, out=out)
    assert len(set(out.tolist())) == 64


def test_random_integers_fill_out():
    assert sorted(taeda.randperm(5, out=taeda.empty(0, dtype=taeda.int32)).tolist()) == [0, 1, 2, 3, 4]
    assert set(taeda.randint(3, (99,), out=taeda.empty(0, dtype=taeda.uint8)).tolist()) <= {0, 1, 2}


def test_parts_are_written_to_a_list():
    rows = [taeda.empty(3), taeda.empty(0)]
    assert taeda.unbind_copy(X, out=rows) is None
    assert taeda.equal(taeda.stack(rows), X)
    with pytest.raises(RuntimeError, match="expected 2"):
        taeda.unbind_copy(X, out=rows[:1])
    with pytest.raises(TypeError, match="sequence of Tensors"):
        taeda.split_copy(X, 1, out=X)
    columns = [taeda.empty(2, 1), taeda.empty(2, 2)]
    taeda.split_with_sizes_copy(X, [1, 2], 1, out=columns)
    assert taeda.equal(columns[1], X[:, 1:])


def test_in_place_forms_refuse_a_result_of_another_kind():
    with pytest.raises(RuntimeError, match="complex64"):
        taeda.tensor([1 + 1j]).abs_()
    with pytest.raises(RuntimeError, match="float64"):
        taeda.ones(2).float_power_(2)


def test_what_factories_are_asked_for_in_vain_is_left_out():
    assert taeda.zeros(2, layout=taeda.strided, pin_memory=False).tolist() == [0, 0]
    assert not taeda.zeros(2, requires_grad=None).requires_grad
    assert taeda.ones_like(X, memory_format=taeda.preserve_format).shape == X.shape
    with pytest.raises(TypeError, match="layout"):
        taeda.zeros(2, layout="sparse_coo")
    with pytest.raises(RuntimeError, match="pin_memory"):
        taeda.zeros(2, pin_memory=True)


def test_a_tensor_of_no_dimension_is_an_operand_before_it_is_a_number():
    assert taeda.max(taeda.tensor([1, 5]), taeda.tensor(3)).tolist() == [3, 5]
    values, _ = taeda.max(X, dim=taeda.tensor(0))
    assert values.tolist() == [3, 4, 2]


def test_scatter_combines():
    index = taeda.tensor([0, 0, 2])
    ones = taeda.ones(3)
    assert taeda.scatter(ones, 0, index, taeda.tensor([2.0, 3.0, 4.0]), reduce="add").tolist() == [6, 1, 5]
    assert ones.scatter_(0, index, 3.0, reduce="multiply").tolist() == [9, 1, 3]
    with pytest.raises(RuntimeError, match="'add' or 'multiply'"):
        taeda.scatter(ones, 0, index, ones, reduce="most")


@pytest.mark.parametrize("divisor", [None, 3, -2])
@pytest.mark.parametrize("padded", [True, False])
def test_means_of_whole_numbers_are_rounded_to_zero(divisor, padded):
    x = taeda.arange(-20, 28).reshape(1, 1, 6, 8)
    how = {"stride": 2, "padding": 1, "count_include_pad": padded}
    sums = taeda.ops.avg_pool2d(x.to(taeda.float64), 3, divisor_override=1, **how)
    counts = taeda.ops.avg_pool2d(taeda.ones_like(x, dtype=taeda.float64), 3, divisor_override=1, **how)
    over = taeda.full_like(sums, divisor or 9) if padded or divisor else counts
    found = taeda.ops.avg_pool2d(x, 3, divisor_override=divisor, **how)
    assert taeda.equal(found, (sums / over).trunc().to(taeda.int64))


def test_running_sums_of_exponentials_of_complex_numbers():
    z = taeda.tensor([1 + 2j, -3 + 0.5j, 800 - 1j, 2j], dtype=taeda.complex128)
    found = taeda.logcumsumexp(z, 0)
    exact = taeda.log(taeda.cumsum(taeda.exp(z - 800), 0))[2:] + 800
    assert taeda.allclose(found[2:], exact)
    assert taeda.allclose(found[:2], taeda.log(taeda.cumsum(taeda.exp(z[:2]), 0)))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda **out: taeda.arange(6, **out), np.arange(6.0)),
        (lambda **out: taeda.linspace(0, 1, 6, **out), np.linspace(0, 1, 6)),
        (lambda **out: taeda.logspace(0, 1, 6, **out), np.logspace(0, 1, 6)),
        (lambda **out: taeda.range(0, 5, **out), np.arange(6.0)),
    ],
    ids=["arange", "linspace", "logspace", "range"],
)
@pytest.mark.filterwarnings("ignore:torch.range is deprecated", "ignore:An output with one or more elements")
def test_targets_of_as_many_numbers_keep_their_shape(make, expected):
    rows, turned = taeda.empty(2, 3, dtype=taeda.float64), taeda.empty(3, 2, dtype=taeda.float64).t()
    for target in (rows, turned, taeda.empty(2, 4, dtype=taeda.float64)[:, :3]):
        assert make(out=target) is target and target.shape == (2, 3)
        np.testing.assert_allclose(target.numpy(), expected.reshape(2, 3), rtol=1e-6)
    assert make(out=taeda.empty(0)).shape == (6,)
    assert make(out=taeda.empty(2, 2)).shape == (6,)
