"""What index tensors name together, read and written: against NumPy, with indices that meet and that do not."""

from __future__ import annotations

import device_programs as programs
import pytest

HEAD = """
import numpy as np
import taeda_tensor_core as tc
rng = np.random.default_rng(SEED)
tried = 0

def there(value):
    if isinstance(value, np.ndarray):
        return tc.from_numpy(value.copy()).to("cuda")
    return value

def same(found, expected, tolerance=0):
    global tried
    tried += 1
    found = found.cpu().numpy()
    assert found.shape == expected.shape and found.dtype == expected.dtype, (found, expected)
    assert np.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True), (found, expected)

def key_of(*parts):
    return tuple(slice(None) if p is None else p for p in parts)
"""
HEAD += programs.launches()
HEAD += """
# Tensors, and the numpy arrays they show, of several ways to lie.
def laid(shape, dtype):
    x = (rng.standard_normal(shape) * 50).astype(dtype)
    t = there(x)
    yield x, t
    yield x, there(np.ascontiguousarray(x.T)).permute(*reversed(range(x.ndim)))
    wide = there(np.stack([x, x], -1))
    yield x, wide[..., 0]
"""


def run(program: str, least: int, seed: int = 1, **environment: str) -> None:
    programs.check(program, HEAD, least, seed, **environment)


KEYS = """
def keys(shape):
    a, b, c = shape
    ints = lambda n, *size: rng.integers(-n, n, size)
    yield (ints(a, 7),)
    yield (ints(a, 3, 4),)
    yield (None, ints(b, 5))
    yield (None, None, ints(c, 5))
    yield (ints(a, 5), ints(b, 5))
    yield (ints(a, 5, 1), ints(b, 4))
    yield (ints(a, 5), None, ints(c, 5))
    yield (None, ints(b, 2, 3), ints(c, 3))
    yield (ints(a, 1, 6), ints(b, 2, 1), ints(c, 2, 6))
    yield (ints(a, 300),)
    yield (ints(a, 400), ints(b, 400), ints(c, 400))
    yield (ints(a, 1),)
    yield (ints(a, 0),)
    yield (rng.random(a) > 0.5,)
    yield (None, rng.random((b, c)) > 0.5)
    yield (rng.random(shape) > 0.5,)
    yield (rng.random(shape) > 2,)
    mask = rng.random(a) > 0.5
    mask[:1] = True
    yield (mask, None, ints(c, 1))
    yield (ints(a, int(mask.sum())), mask if b == a else ints(b, int(mask.sum())))
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool", "complex128"])
def test_what_indices_name_is_picked(dtype: str) -> None:
    run(
        KEYS
        + f"""
for shape in ((5, 5, 7), (6, 3, 8), (2, 1, 16)):
    for x, t in laid(shape, {dtype!r}):
        for key in keys(shape):
            same(tc.ops.index(t, [there(k) for k in key]), x[key_of(*key)])
x = rng.standard_normal((2,) * 11)
key = tuple(rng.integers(-2, 2, 9) for _ in range(11))
same(tc.ops.index(there(x), [there(k) for k in key]), x[key])
# Indices on the host, and of other types.
t = there(x)
same(t[tc.from_numpy(key[0].copy())], x[key[0]])
same(tc.ops.index(t, [there(key[0].astype("int32"))]), x[key[0]])
""",
        150,
    )


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
@pytest.mark.parametrize("accumulate", [False, True])
def test_what_indices_name_is_written(dtype: str, accumulate: bool) -> None:
    run(
        KEYS
        + f"""
dtype = {dtype!r}
def put(x, key, values, accumulate):
    expected = x.copy()
    if not accumulate:
        expected[key] = values
    elif dtype == "bool":
        np.logical_or.at(expected, key, values)
    else:
        wide = expected.astype({{"float32": "float64", "complex64": "complex128"}}.get(dtype, dtype))
        np.add.at(wide, key, values)
        expected = wide.astype(dtype)
    return expected
for shape in ((5, 5, 7), (6, 3, 8)):
    for key in keys(shape):
        for x, t in laid(shape, dtype):
            at = key_of(*key)
            place = x[at].shape
            for size in (place, place[-1:], (1,), ()):
                values = (rng.standard_normal(size) * 50).astype(dtype)
                expected = put(x, at, values, {accumulate})
                to = t.clone() if t.is_contiguous() else t
                before = x.copy()
                tc.ops.index_put_(to, [there(k) for k in key], there(np.asarray(values)), {accumulate})
                same(to, expected, 1e-5)
                tc.ops.copy_(to, there(before))
        x = (rng.standard_normal(shape) * 50).astype(dtype)
        t = there(x)
        t[tuple(slice(None) if k is None else there(k) for k in key)] = 1
        x[key_of(*key)] = 1
        same(t, x)
""",
        200,
    )


def test_slices_are_added_and_copied_by_an_index() -> None:
    run(
        """
for dtype in ("float32", "float64", "int32"):
    for shape in ((9,), (5, 6), (3, 4, 5), (1, 300, 2)):
        for dim in range(len(shape)):
            for count in (0, 1, 7, 255, 256, 257, 700, 1300):
                for x, t in laid(shape, dtype):
                    index = rng.integers(0, shape[dim], count)
                    if count == 700:
                        index[:] = shape[dim] - 1  # one run through all tiles
                    sizes = list(shape)
                    sizes[dim] = count
                    source = (rng.standard_normal(sizes) * 9).astype(dtype)
                    at = (slice(None),) * dim + (index,)
                    expected = x.astype("float64")
                    np.add.at(expected, at, 3 * source.astype("float64"))
                    found = tc.index_add(t, dim, there(index), there(source), alpha=3)
                    same(found.double(), expected, 1e-4)
                    expected = x.copy()
                    expected[at] = source
                    same(tc.index_copy(t, dim, there(index), there(source)), expected)
                    expected[at] = 4
                    same(tc.index_fill(t, dim, there(index - shape[dim] * (index % 2)), 4), expected)
x = there(np.arange(3.0))
same(tc.index_add(tc.tensor(2.0, device="cuda"), 0, tc.tensor([0], device="cuda"), tc.tensor(5.0, device="cuda")),
     np.float32(7.0).reshape(()))
# Halves are added up in more, and rounded once.
ones = tc.ones(5000, device="cuda", dtype=tc.bfloat16)
one_place, none = tc.zeros(5000, device="cuda", dtype=tc.int64), tc.zeros(2, device="cuda", dtype=tc.bfloat16)
total = tc.index_add(none, 0, one_place, ones)
same(total.float(), np.array([4992, 0], "float32"))
""",
        500,
    )


def test_scattering_by_an_index_that_is_the_same_for_all_lines() -> None:
    run(
        """
for shape, dim, count in (((9, 6), 0, 700), ((6, 9), 1, 20), ((5, 4, 3), 1, 300), ((8,), 0, 3000), ((8,), 0, 5)):
    for x, t in laid(shape, "float64"):
        names = rng.integers(0, shape[dim], count)
        sizes = list(shape)
        sizes[dim] = count
        source = rng.standard_normal(sizes)
        index = there(names).reshape([-1 if d == dim else 1 for d in range(len(shape))]).expand(sizes)
        at = (slice(None),) * dim + (names,)
        expected = x.copy()
        np.add.at(expected, at, source)
        same(tc.scatter_add(t, dim, index, there(source)), expected, 1e-9)
        expected = x.copy()
        expected[at] = source
        same(tc.scatter(t, dim, index, there(source)), expected)
        if len(shape) == 2:  # of a part of the lines
            expected = x.copy()
            part = tuple(slice(0, None if d == dim else 2) for d in range(2))
            np.add.at(expected[part], at, source[part])
            same(tc.scatter_add(t, dim, index[part], there(source)), expected, 1e-9)
wide, source = there(np.zeros((9, 6))), there(rng.standard_normal((20, 6)))
index = there(rng.integers(0, 9, 20)).unsqueeze(1).expand(20, 6)
assert launches(lambda: tc.scatter_add(wide, 0, index, source)) == 2
""",
        30,
    )


def test_gradients_of_embeddings() -> None:
    run(
        """
for count, width in ((7, 3), (256, 1), (2000, 5), ((40, 50), 8), (0, 4)):
    for padding in (-1, 0, 4):
        for often in (False, True):
            places = rng.integers(0, 9, count)
            places[rng.random(places.shape) > 0.6] = 4  # some are met again and again
            grad = rng.standard_normal((*places.shape, width))
            expected = np.zeros((9, width))
            np.add.at(expected, places.reshape(-1), grad.reshape(-1, width))
            if often:
                expected /= np.maximum(np.bincount(places.reshape(-1), minlength=9), 1)[:, None]
            if padding >= 0:
                expected[padding] = 0
            same(tc.ops.embedding_backward(there(grad), there(places), 9, padding, often), expected, 1e-9)
try:
    tc.ops.embedding_backward(there(np.ones((2, 3))), there(np.array([1, 9])), 9, -1, False).cpu()
except IndexError as error:
    assert "embedding_backward: index 9 is out of range for size 9" in str(error), error
else:
    raise AssertionError
""",
        30,
    )


def test_indices_that_change_meanwhile_and_values_that_are_written_over() -> None:
    run(
        """
x = rng.permutation(2000)
t = there(x)
tc.ops.index_put_(t, [t[:1000]], there(np.arange(1000)), False)
expected = x.copy()
expected[x[:1000]] = np.arange(1000)
same(t, expected)
t = there(x)
tc.ops.index_put_(t, [there(np.arange(1000) + 7)], t[:1000], False)
expected = x.copy()
expected[7:1007] = x[:1000]
same(t, expected)
""",
        2,
    )


def test_places_beyond_are_told_and_left_out() -> None:
    run(
        """
def says(work, text):
    global tried
    tried += 1
    try:
        work()
        tc.synchronize("cuda")
    except IndexError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
x = there(np.arange(12.0).reshape(3, 4))
far, low = tc.tensor([1, 3], device="cuda"), tc.tensor([-4, 0], device="cuda")
says(lambda: x[far], "index: index 3 is out of range for size 3")
says(lambda: x[:, low - 1], "index: index -5 is out of range for size 4")
says(lambda: x.index_add(0, far, x[:2]), "index_add: index 3 is out of range for size 3")
says(lambda: x.index_copy(0, far - 2, x[:2]), "index_copy: index -1 is out of range for size 3")
y = x.clone()
def put(): y[far] = 7
says(put, "index_put_: index 3 is out of range for size 3")
same(y, np.array([[0, 1, 2, 3], [7.0] * 4, [8, 9, 10, 11]]))
many = tc.tensor([1, 3] * 500, device="cuda")
says(lambda: y.index_add_(0, many, tc.ones(1000, 4, dtype=tc.float64, device="cuda")), "index 3 is out of range")
same(y, np.array([[0, 1, 2, 3], [507.0] * 4, [8, 9, 10, 11]]))
try:
    y[tc.tensor([0, 1], device="cuda")] = tc.ones(3, 4, dtype=tc.float64, device="cuda")
except RuntimeError as error:
    assert "has shape (3, 4), which cannot be broadcast to the indexed shape (2, 4)" in str(error), error
else:
    raise AssertionError
""",
        8,
    )


def test_in_few_launches_and_without_the_host() -> None:
    run(
        """
kind = tc.get_device_module("cuda")
x, index = there(rng.standard_normal((40, 8))), there(rng.integers(0, 40, 20))
many, values = there(rng.integers(0, 40, 2000)), there(rng.standard_normal((2000, 8)))
for work, most in (
    (lambda: x[index], 1),
    (lambda: x[index, index % 8], 3),
    (lambda: x.index_add_(0, index, values[:20]), 2),
    (lambda: x.index_put_([index], values[:20]), 1),
    (lambda: x.index_add_(0, many, values), 6),
):
    tried += 1
    work()
    count = launches(work)
    assert count <= most, (count, most)
""",
        5,
    )
