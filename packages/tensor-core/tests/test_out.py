"""The out= forms of operators that are made of others: results written, cast, resized, or refused."""

from __future__ import annotations

import pytest

import taeda_tensor_core as taeda

X = taeda.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
PLACES = taeda.tensor([[0, 1, 0]])

CALLS = {
    "aminmax": lambda **out: taeda.aminmax(X, dim=1, **out),
    "angle": lambda **out: taeda.angle(X, **out),
    "avg_pool2d": lambda **out: taeda.ops.avg_pool2d(X[None], 2, 1, **out),
    "avg_pool3d": lambda **out: taeda.ops.avg_pool3d(X[None, None], (1, 2, 2), 1, **out),
    "bucketize": lambda **out: taeda.bucketize(X, taeda.tensor([0.0, 1.0]), **out),
    "column_stack": lambda **out: taeda.column_stack((X, X), **out),
    "complex": lambda **out: taeda.complex(X, X, **out),
    "conj_physical": lambda **out: taeda.conj_physical(taeda.complex(X, X), **out),
    "diag": lambda **out: taeda.diag(X, **out),
    "dstack": lambda **out: taeda.dstack((X, X), **out),
    "float_power": lambda **out: taeda.float_power(X, 2, **out),
    "hardshrink": lambda **out: taeda.ops.hardshrink(X, 1.0, **out),
    "histc": lambda **out: taeda.histc(X, 4, **out),
    "hstack": lambda **out: taeda.hstack((X, X), **out),
    "index_add": lambda **out: taeda.index_add(X, 0, taeda.tensor([1]), X[:1], **out),
    "index_copy": lambda **out: taeda.index_copy(X, 0, taeda.tensor([1]), X[:1], **out),
    "inner": lambda **out: taeda.inner(X, X, **out),
    "isin": lambda **out: taeda.isin(X, taeda.tensor([4.0]), **out),
    "kron": lambda **out: taeda.kron(X, X, **out),
    "kthvalue": lambda **out: taeda.kthvalue(X, 2, **out),
    "ldexp": lambda **out: taeda.ldexp(X, taeda.tensor(2), **out),
    "masked_select": lambda **out: taeda.masked_select(X, X > 0, **out),
    "max": lambda **out: taeda.max(X, **out),
    "max of two": lambda **out: taeda.max(X, -X, **out),
    "median": lambda **out: taeda.median(X, 1, **out),
    "msort": lambda **out: taeda.msort(X, **out),
    "nanmean": lambda **out: taeda.nanmean(X, **out),
    "nansum": lambda **out: taeda.nansum(X, **out),
    "narrow_copy": lambda **out: taeda.narrow_copy(X, 1, 0, 2, **out),
    "native_batch_norm": lambda **out: taeda.native_batch_norm(
        X, None, None, None, None, True, 0.1, 1e-5, **out
    ),
    "nonzero": lambda **out: taeda.nonzero(X, **out),
    "norm": lambda **out: taeda.norm(X, **out),
    "norm of a name": lambda **out: taeda.norm(X, "fro", **out),
    "polar": lambda **out: taeda.polar(X.abs(), X, **out),
    "scatter": lambda **out: taeda.scatter(X, 0, PLACES, X, **out),
    "scatter a number": lambda **out: taeda.scatter(X, 0, PLACES, 5.0, **out),
    "scatter_add": lambda **out: taeda.scatter_add(X, 0, PLACES, X, **out),
    "scatter_reduce": lambda **out: taeda.scatter_reduce(X, 0, PLACES, X, "amax", **out),
    "searchsorted": lambda **out: taeda.searchsorted(taeda.tensor([0.0, 1.0]), X, **out),
    "slice_scatter": lambda **out: taeda.slice_scatter(X, X[:, :1], 1, 0, 1, **out),
    "std": lambda **out: taeda.std(X, 1, **out),
    "take": lambda **out: taeda.take(X, taeda.tensor([4, 0]), **out),
    "take_along_dim": lambda **out: taeda.take_along_dim(X, PLACES, 0, **out),
    "tensordot": lambda **out: taeda.tensordot(X, X.T, 1, **out),
    "vdot": lambda **out: taeda.vdot(X[0], X[1], **out),
    "vstack": lambda **out: taeda.vstack((X, X), **out),
}


def tensors(result: object) -> tuple[taeda.Tensor, ...]:
    return (result,) if isinstance(result, taeda.Tensor) else tuple(result)


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_written_to_out_of_any_size_and_layout(name):
    call = CALLS[name]
    expected = tensors(call())
    right = [taeda.empty_like(t) for t in expected]
    empty = [taeda.empty(0, dtype=t.dtype) for t in expected]
    strided = [
        taeda.empty((*t.shape, 2), dtype=t.dtype)[..., 0] if t.dim() else taeda.empty((), dtype=t.dtype)
        for t in expected
    ]
    for targets in (right, empty, strided):
        given = call(out=targets[0] if len(targets) == 1 else tuple(targets))
        assert all(a is b for a, b in zip(tensors(given), targets, strict=True))
        for target, t in zip(targets, expected, strict=True):
            assert target.dtype == t.dtype
            assert taeda.equal(target, t)


def test_results_are_cast_where_the_kind_of_number_allows_it():
    target = taeda.empty(2, 3, dtype=taeda.float64)
    assert taeda.equal(taeda.add(X, 1, out=target), (X + 1).to(taeda.float64))
    with pytest.raises(RuntimeError, match="int64"):
        taeda.add(X, 1, out=taeda.empty(2, 3, dtype=taeda.int64))


@pytest.mark.parametrize(
    "name", ["diag", "index_add", "kthvalue", "masked_select", "scatter", "take", "inner"]
)
def test_operators_that_cast_nothing_refuse_another_dtype(name):
    targets = [taeda.full_like(t, 7, dtype=taeda.float64) for t in tensors(CALLS[name]())]
    with pytest.raises(RuntimeError, match="float64"):
        CALLS[name](out=targets[0] if len(targets) == 1 else tuple(targets))
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
    assert taeda.ones_like(X, memory_format=taeda.preserve_format).shape == X.shape
    with pytest.raises(TypeError, match="layout"):
        taeda.zeros(2, layout="sparse_coo")
    with pytest.raises(TypeError, match="pin_memory"):
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
