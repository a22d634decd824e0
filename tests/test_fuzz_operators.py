"""Random operators on random arrays of every layout and dtype give what NumPy gives.

TAEDA_TEST_SEED chooses other examples; a failure prints how to repeat it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import taeda as t
from taeda_testing import OpRecord, all_records, find_record
from taeda_testing.runner import compare, function_of

hypothesis = pytest.importorskip("hypothesis", reason="these tests need hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402

SEED = int(os.environ.get("TAEDA_TEST_SEED", "2019"))

BOOL = ["bool"]
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = INTEGERS + FLOATS
NUMBERS = REAL + COMPLEX
TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "complex64": 4e-5}


def fuzz(examples: int) -> Callable:
    """Runs a test on `examples` random inputs of a fixed seed."""

    def decorate(test: Callable) -> Callable:
        limits = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        )
        return hypothesis.seed(SEED)(limits(test))

    return decorate


def values(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Small numbers, from a drawn seed: a failing example stays short."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return rng.integers(0 if dtype[0] == "u" else -6, 7, shape).astype(dtype)
    array = rng.integers(-12, 13, shape) / 4
    if dtype.startswith("complex"):
        array = array + 1j * rng.integers(-12, 13, shape) / 4
    elif array.size and draw(st.integers(0, 9)) == 0:
        array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    return np.asarray(array).astype(dtype)


@st.composite
def arrays(
    draw: st.DrawFn, dtype: str, shape: tuple[int, ...] | None = None, finite: bool = False
) -> np.ndarray:
    """An array of the shape that is contiguous, or steps through a larger one, backwards, turned or broadcast."""
    if shape is None:
        shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    layout = draw(st.sampled_from(["plain", "plain", "steps", "turned", "broadcast"]))
    if layout == "plain":
        result = values(draw, shape, dtype)
    elif layout == "steps":
        steps = [draw(st.sampled_from([1, 2, 3, -1, -2])) for _ in shape]
        whole = values(draw, tuple(n * abs(k) for n, k in zip(shape, steps, strict=True)), dtype)
        result = whole[tuple(slice(None, None, k) for k in steps)]
    elif layout == "turned":
        order = draw(st.permutations(range(len(shape))))
        result = values(draw, tuple(shape[i] for i in order), dtype).transpose(np.argsort(order))
    else:
        kept = tuple(1 if draw(st.booleans()) else n for n in shape)
        result = np.broadcast_to(values(draw, kept, dtype), shape)
    assert result.shape == shape
    return np.nan_to_num(result, nan=1.0, posinf=2.0, neginf=-2.0) if finite else result


def tensor(array: np.ndarray) -> t.Tensor:
    """The same memory as a tensor, strides included."""
    return t.asarray(array)


def agree(actual: t.Tensor, expected: object, dtype: str | None = None, loose: float = 1.0) -> None:
    """Same shape, dtype and values."""
    expected = np.asarray(expected)
    dtype = dtype or expected.dtype.name
    assert isinstance(actual, t.Tensor)
    assert str(actual.dtype).removeprefix("taeda.") == dtype
    assert tuple(actual.shape) == expected.shape
    tolerance = TOLERANCE.get(dtype, 1e-10) * loose
    exact = expected.dtype.kind in "biu"
    np.testing.assert_allclose(
        actual.numpy(),
        expected,
        rtol=0 if exact else tolerance,
        atol=0 if exact else tolerance,
        equal_nan=True,
    )


def numpy(function: Callable, *args: object, **options: object) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(function(*args, **options))


RECORDS = {
    operands: [r for r in all_records() if len(r.domains) == operands and not r.creates]
    for operands in (1, 2)
}


def operands(
    draw: st.DrawFn, record: OpRecord, dtype: str, shapes: Sequence[tuple[int, ...]]
) -> list[np.ndarray]:
    """Arrays of the shapes, with values that the operator is defined for."""
    drawn = []
    for shape, (low, high, special) in zip(shapes, record.domains, strict=True):
        if special and dtype not in COMPLEX:
            drawn.append(np.asarray(draw(arrays(dtype, shape))))
            continue
        array = np.asarray(draw(arrays(dtype, shape, finite=True)))
        if dtype in COMPLEX:
            inside = np.clip(array.real, low, high) + 1j * np.clip(array.imag, low, high)
        elif dtype in INTEGERS:
            inside = np.clip(array, int(np.ceil(max(low, 0) if dtype[0] == "u" else low)), int(high))
        else:
            inside = np.clip(array, low, high) if dtype != "bool" else array
        keeps = np.array_equal(inside, array)  # its layout, too
        drawn.append(array if keeps else np.asarray(inside, dtype))
    return drawn


@fuzz(800)
@given(st.data())
def test_functions_of_two(data):
    record = data.draw(st.sampled_from(RECORDS[2]))
    dtype = data.draw(st.sampled_from(record.dtypes))
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=4))
    given_ = operands(data.draw, record, dtype, shapes.input_shapes)
    compare(record, function_of(record)(*map(tensor, given_)), numpy(record.reference, *given_), record.name)


@fuzz(800)
@given(st.data())
def test_functions_of_one(data):
    record = data.draw(st.sampled_from(RECORDS[1]))
    dtype = data.draw(st.sampled_from(record.dtypes))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    given_ = operands(data.draw, record, dtype, [shape])
    compare(record, function_of(record)(*map(tensor, given_)), numpy(record.reference, *given_), record.name)


@fuzz(300)
@given(st.data())
def test_functions_of_two_in_place_and_out(data):
    record = data.draw(st.sampled_from([r for r in RECORDS[2] if r.in_place and r.out]))
    dtype = data.draw(st.sampled_from(record.dtypes))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    a, b = operands(data.draw, record, dtype, [shape, shape])
    expected = numpy(record.reference, a, b)
    out = t.empty(0, dtype=getattr(t, expected.dtype.name))
    assert function_of(record)(tensor(a), tensor(b), out=out) is out
    compare(record, out, expected, f"{record.name}.out")
    if np.can_cast(expected.dtype, dtype, "same_kind"):
        turned = tensor(a.T.copy()).permute(tuple(range(a.ndim))[::-1])
        assert getattr(turned, record.name + "_")(tensor(b)) is turned
        compare(record, turned, expected.astype(dtype), f"{record.name}_")


@fuzz(150)
@given(st.data())
def test_numbers_as_operands(data):
    name, reference = data.draw(
        st.sampled_from(
            [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("maximum", np.maximum)]
        )
    )
    dtype = data.draw(st.sampled_from(["int8", "int32", "int64", "float32", "float64"]))
    a = data.draw(arrays(dtype))
    number = data.draw(st.integers(-5, 5))
    agree(getattr(t, name)(tensor(a), number), numpy(reference, a, np.asarray(number, dtype)))
    if name == "sub":
        agree(number - tensor(a), numpy(reference, np.asarray(number, dtype), a))


# Where conversions and comparisons go wrong first.
BOUNDARIES = [0, 1, -1, 127, 128, -128, 255, 256, 300, 65535, 65536, 2**31 - 1, 2**31, -(2**31), 2**32]
BOUNDARIES += [2**63 - 1, 2**63, -(2**63), 2**64 - 1]
COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
DIVIDED = ("floor_divide", "remainder", "fmod")


def promoted(a: str, b: str) -> str:
    """PyTorch's dtype for two tensors with dimensions: unlike NumPy's, integers follow any floating dtype."""
    ranks = [["b", "i", "f", "c"].index(np.dtype(d).kind.replace("u", "i")) for d in (a, b)]
    if ranks[0] == ranks[1] or sorted(ranks) == [2, 3]:
        return np.result_type(a, b).name
    return a if ranks[0] > ranks[1] else b


@fuzz(300)
@given(st.data())
def test_mixed_dtypes(data):
    name, reference = data.draw(
        st.sampled_from([("add", np.add), ("mul", np.multiply), ("eq", np.equal), ("maximum", np.maximum)])
    )
    dtypes = BOOL + REAL if name == "maximum" else BOOL + NUMBERS
    # uint64 beside a signed dtype has no common integer type.
    first, second = (data.draw(st.sampled_from([d for d in dtypes if d != "uint64"])) for _ in range(2))
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=4))
    a, b = (data.draw(arrays(d, s)) for d, s in zip((first, second), shapes.input_shapes, strict=True))
    if 0 in (a.ndim, b.ndim):
        return
    common = promoted(first, second)
    expected = numpy(reference, a.astype(common), b.astype(common))
    actual = getattr(t, name)(tensor(a), tensor(b))
    agree(actual, expected, loose=2)
    agree(getattr(t, name)(tensor(b), tensor(a)), expected, loose=2)


@fuzz(300)
@given(st.data())
def test_comparisons_with_boundary_numbers(data):
    name = data.draw(st.sampled_from(COMPARED))
    reference = find_record(name).reference
    dtype, number = data.draw(st.sampled_from(INTEGERS)), data.draw(st.sampled_from(BOUNDARIES))
    a = data.draw(arrays(dtype))
    expected = np.asarray(reference(a.astype(object), number), bool)
    agree(getattr(t, name)(tensor(a), number), expected)


@fuzz(300)
@given(st.data())
def test_boundary_numbers_are_stored_exactly_or_refused(data):
    dtype, number = data.draw(st.sampled_from(INTEGERS)), data.draw(st.sampled_from(BOUNDARIES))
    a = data.draw(arrays(dtype, finite=True)).copy()
    limits = np.iinfo(dtype)
    # A negative number may stand for its complement, as in PyTorch.
    fits = limits.min <= number <= limits.max or (limits.min == 0 and -limits.max <= number < 0)
    stored = number % (limits.max + 1) if number < 0 and limits.min == 0 else number
    mask = data.draw(arrays("bool", a.shape))
    store = data.draw(st.sampled_from(["fill_", "setitem", "masked_fill", "where", "full_like"]))
    x = tensor(a.copy())
    calls = {
        "fill_": lambda: x.fill_(number),
        "setitem": lambda: (x.__setitem__(..., number), x)[1],
        "masked_fill": lambda: x.masked_fill(tensor(mask), number),
        "where": lambda: t.where(tensor(mask), number, x),
        "full_like": lambda: t.full_like(x, number),
    }
    if not fits:
        with pytest.raises(OverflowError, match=str(number)):
            calls[store]()
        agree(x, a)
        return
    everywhere = store not in ("masked_fill", "where")
    expected = np.where(np.ones_like(mask) if everywhere else mask, np.asarray(stored, dtype), a)
    agree(calls[store](), expected)


@fuzz(300)
@given(st.data())
def test_divisions_by_boundary_numbers(data):
    name = data.draw(st.sampled_from(DIVIDED))
    reference = find_record(name).reference
    dtype, number = data.draw(st.sampled_from(INTEGERS)), data.draw(st.sampled_from(BOUNDARIES))
    a, limits = data.draw(arrays(dtype)), np.iinfo(dtype)
    divide = getattr(t, name)
    if number == 0 and a.size:
        with pytest.raises(ZeroDivisionError, match=name):
            divide(tensor(a), number)
    elif not limits.min <= number <= limits.max:
        with pytest.raises(OverflowError, match=name):
            divide(tensor(a), number)
    elif number:
        agree(divide(tensor(a), number), numpy(reference, a, np.asarray(number, dtype)))
    # As a 0-d tensor the divisor is converted: it may become 0, which must not trap.
    if -(2**63) <= number < 2**63 and np.asarray(number).astype(dtype) == 0 and a.size and a.ndim:
        with pytest.raises(ZeroDivisionError, match=name):
            divide(tensor(a), t.tensor(number))


@fuzz(200)
@given(st.data())
def test_shifts_by_boundary_numbers(data):
    dtype = data.draw(st.sampled_from(INTEGERS))
    count = data.draw(st.sampled_from([*BOUNDARIES, 2, 7, 8, 9, 15, 16, 31, 32, 63, 64]))
    a = data.draw(arrays(dtype))
    whole = 0 <= count < 8 * np.dtype(dtype).itemsize
    left = numpy(np.left_shift, a, np.asarray(count, dtype)) if whole else np.zeros_like(a)
    right = (
        numpy(np.right_shift, a, np.asarray(count, dtype)) if whole else np.where(a < 0, -1, 0).astype(dtype)
    )
    agree(t.bitwise_left_shift(tensor(a), count), left)
    agree(t.bitwise_right_shift(tensor(a), count), right)


@fuzz(100)
@given(st.data())
def test_normalising_over_shapes_with_zeros(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3))
    kept = data.draw(st.integers(0, len(shape) - 1))
    a = data.draw(arrays("float64", shape, finite=True))
    axes = tuple(range(kept, len(shape)))
    if a.size:
        centred = a - a.mean(axes, keepdims=True)
        expected = centred / np.sqrt(a.var(axes, keepdims=True) + 1e-5)
    else:
        expected = a
    agree(t.nn.functional.layer_norm(tensor(a), shape[kept:]), expected, loose=1e4)
    agree(
        t.nn.functional.softmax(tensor(a), kept).sum(kept), np.full(a.sum(kept).shape, float(shape[kept] > 0))
    )


SUMS = [("sum", np.sum), ("prod", np.prod), ("any", np.any), ("all", np.all)]
EXTREMES = [("amax", np.amax), ("amin", np.amin)]
MEANS = [("mean", np.mean), ("var", np.var), ("std", np.std)]


@st.composite
def dims(draw: st.DrawFn, ndim: int) -> tuple[int, ...] | int | None:
    """None, one dimension or several, counted from either end."""
    if ndim == 0:
        return None
    chosen = draw(st.lists(st.integers(0, ndim - 1), min_size=1, max_size=ndim, unique=True))
    chosen = [d - ndim if draw(st.booleans()) else d for d in chosen]
    return draw(st.sampled_from([None, chosen[0], tuple(chosen)]))


@fuzz(400)
@given(st.data())
def test_reductions(data):
    name, reference = data.draw(st.sampled_from(SUMS + EXTREMES + MEANS))
    dtype = data.draw(st.sampled_from(["float32", "float64"] if (name, reference) in MEANS else BOOL + REAL))
    a = data.draw(arrays(dtype, finite=True))
    dim, keep = data.draw(dims(a.ndim)), data.draw(st.booleans())
    axes = tuple(range(a.ndim)) if dim is None else tuple(np.atleast_1d(dim))
    if (name, reference) in EXTREMES + MEANS and any(a.shape[d] < 1 for d in axes):
        return
    options = {} if name not in ("var", "std") else {"correction": 0}
    if name in ("sum", "prod") and dtype not in FLOATS:
        # Integer sums are int64 whatever the dtype, but those of uint64.
        kind = "uint64" if dtype == "uint64" else "int64"
        expected = numpy(reference, a, axis=dim, keepdims=keep, dtype=kind)
    elif dtype == "float16":
        expected, kind = numpy(reference, a.astype("float64"), axis=dim, keepdims=keep), "float16"
        kind = "bool" if name in ("any", "all") else kind
    else:
        # Truth values of uint8 are uint8, as in PyTorch from the time when it had no bool.
        kind = "uint8" if name in ("any", "all") and dtype == "uint8" else None
        expected = numpy(reference, a, axis=dim, keepdims=keep)
    if kind == "float16" and not np.all(np.abs(expected) < 6e4):
        return
    actual = getattr(t, name)(tensor(a), dim, keepdim=keep, **options)
    agree(
        actual, expected, kind, loose=1 + 2 * np.max(np.abs(expected), initial=0) if kind == "float16" else 10
    )


@fuzz(150)
@given(st.data())
def test_scans_and_positions(data):
    name, reference = data.draw(
        st.sampled_from(
            [("cumsum", np.cumsum), ("cumprod", np.cumprod), ("argmax", np.argmax), ("argmin", np.argmin)]
        )
    )
    dtype = data.draw(st.sampled_from(["int32", "int64", "float64"]))
    a = data.draw(arrays(dtype, finite=True))
    if a.ndim == 0 or (name.startswith("arg") and 0 in a.shape):
        return
    dim = data.draw(st.integers(-a.ndim, a.ndim - 1))
    expected = numpy(reference, a, axis=dim)
    actual = getattr(t, name)(tensor(a), dim)
    if name.startswith("arg"):
        # Which of equal elements is named is open.
        taken = np.take_along_axis(a, np.expand_dims(actual.numpy(), dim), dim)
        best = np.take_along_axis(a, np.expand_dims(expected, dim), dim)
        np.testing.assert_array_equal(taken, best)
    else:
        agree(actual, expected, "int64" if dtype == "int32" else None)


@fuzz(200)
@given(st.data())
def test_sorting(data):
    dtype = data.draw(st.sampled_from(BOOL + REAL))
    a = data.draw(arrays(dtype))
    if a.ndim == 0:
        return
    dim, down = data.draw(st.integers(-a.ndim, a.ndim - 1)), data.draw(st.booleans())
    # NaN counts as the largest number.
    order = np.argsort(a, axis=dim, kind="stable")
    if down:
        order = a.shape[dim] - 1 - np.flip(np.argsort(np.flip(a, dim), axis=dim, kind="stable"), dim)
    sorted_, indices = t.sort(tensor(a), dim, down, True)
    agree(sorted_, np.take_along_axis(a, order, dim))
    agree(indices, order)


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@fuzz(200)
@given(st.data())
def test_casts(data):
    source, target = (data.draw(st.sampled_from(BOOL + NUMBERS)) for _ in range(2))
    a = np.abs(data.draw(arrays(source, finite=True))).astype(source)
    expected = (a.real if target not in COMPLEX and target != "bool" else a).astype(target)
    agree(tensor(a).to(getattr(t, target)), expected)


@fuzz(200)
@given(st.data())
def test_joining_and_rearranging(data):
    dtype = data.draw(st.sampled_from(BOOL + NUMBERS))
    a = data.draw(arrays(dtype))
    b = data.draw(arrays(dtype, a.shape))
    x, y = tensor(a), tensor(b)
    agree(t.stack([x, y], -1), np.stack([a, b], -1))
    agree(t.where(x == y, x, y), np.where(a == b, a, b))
    agree(x.flatten(), a.reshape(-1))
    agree(x.clone(), a)
    agree(x.contiguous(), a)
    if a.ndim == 0:
        return
    dim = data.draw(st.integers(-a.ndim, a.ndim - 1))
    agree(t.cat([x, y, x], dim), np.concatenate([a, b, a], dim))
    agree(x.flip(dim), np.flip(a, dim))
    shift = data.draw(st.integers(-5, 5))
    agree(t.roll(x, shift, dim), np.roll(a, shift, dim))
    repeats = tuple(data.draw(st.integers(0, 2)) for _ in a.shape)
    agree(x.repeat(repeats), np.tile(a, repeats))
    agree(x.repeat_interleave(2, dim), np.repeat(a, 2, dim))
    if a.ndim >= 2:
        k = data.draw(st.integers(-3, 3))
        agree(t.tril(x, k), np.tril(a, k))
        agree(t.triu(x, k), np.triu(a, k))


@fuzz(200)
@given(st.data())
def test_indexing(data):
    dtype = data.draw(st.sampled_from(["bool", "uint8", "int64", "float32", "complex128"]))
    a = data.draw(arrays(dtype))
    if a.ndim == 0:
        return
    x = tensor(a)
    basic = data.draw(hnp.basic_indices(a.shape, allow_newaxis=True, allow_ellipsis=True))
    agree(x[basic], a[basic])
    mask = data.draw(arrays("bool", a.shape))
    agree(x[tensor(mask)], a[mask])
    agree(x.masked_fill(tensor(mask), 1), np.where(mask, np.asarray(1, dtype), a))
    agree(t.nonzero(x), np.argwhere(a))
    if 0 in a.shape:
        return
    picks = data.draw(
        hnp.integer_array_indices(a.shape[:1], result_shape=hnp.array_shapes(max_dims=2, max_side=3))
    )
    agree(x[tensor(picks[0])], a[picks])
    agree(x[..., [0, -1]], a[..., [0, -1]])
    agree(t.take(x, tensor(picks[0]).long()), np.take(a, picks[0]))


@fuzz(200)
@given(st.data())
def test_products(data):
    dtype = data.draw(st.sampled_from(["int32", "int64", "float32", "float64", "complex64", "complex128"]))
    shapes = data.draw(
        hnp.mutually_broadcastable_shapes(
            signature="(m?,n),(n,p?)->(m?,p?)", max_dims=2, min_side=0, max_side=4
        )
    )
    a, b = (data.draw(arrays(dtype, shape, finite=True)) for shape in shapes.input_shapes)
    agree(t.matmul(tensor(a), tensor(b)), numpy(np.matmul, a, b), loose=20)


@fuzz(100)
@given(st.data())
def test_einsum(data):
    sizes = {letter: data.draw(st.integers(0, 3)) for letter in "ijkl"}
    terms = [
        data.draw(st.lists(st.sampled_from("ijkl"), max_size=3)) for _ in range(data.draw(st.integers(1, 3)))
    ]
    known = sorted({letter for term in terms for letter in term})
    result = [letter for letter in known if data.draw(st.booleans())]
    equation = ",".join("".join(term) for term in terms) + "->" + "".join(result)
    operands = [data.draw(arrays("float64", tuple(sizes[c] for c in term), finite=True)) for term in terms]
    agree(t.einsum(equation, *map(tensor, operands)), numpy(np.einsum, equation, *operands), loose=100)
