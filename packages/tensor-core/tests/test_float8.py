"""Floating-point numbers of 8 bits: what they hold, how others become them, and what operators do with them."""

import copy
import io
import math
import pickle

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import serialization

# bits of the mantissa, bias, largest finite number, what infinity becomes
FORMATS = {
    "float8_e4m3fn": (3, 7, 448.0, 448.0),
    "float8_e5m2": (2, 15, 57344.0, math.inf),
    "float8_e4m3fnuz": (3, 8, 240.0, math.nan),
    "float8_e5m2fnuz": (2, 16, 57344.0, math.nan),
}
NAMES = [*FORMATS, "float8_e8m0fnu"]


def codes(name):
    return tc.arange(256).to(tc.uint8).view(getattr(tc, name))


def value_of(code, mantissa, bias, largest):
    """What the format's definition says of a code below 128, as a number; those beyond the largest are not finite."""
    exponent, fraction = code >> mantissa, code & ((1 << mantissa) - 1)
    value = math.ldexp(fraction + ((1 << mantissa) if exponent else 0), max(exponent, 1) - bias - mantissa)
    return value if value <= largest else None


@pytest.mark.parametrize("name", FORMATS)
def test_values(name):
    mantissa, bias, largest, _ = FORMATS[name]
    values = codes(name).tolist()
    for code in range(128):
        expected = value_of(code, mantissa, bias, largest)
        if expected is None:
            assert not math.isfinite(values[code])
        else:
            assert values[code] == expected
            if code or not name.endswith("fnuz"):
                assert values[code + 128] == -expected
    info = tc.finfo(getattr(tc, name))
    assert info.max == largest and info.min == -largest and info.bits == 8


@pytest.mark.parametrize("name", FORMATS)
def test_nearest_number_ties_to_even(name):
    mantissa, bias, largest, _ = FORMATS[name]
    finite = np.array([v for c in range(128) if (v := value_of(c, mantissa, bias, largest)) is not None])
    rng = np.random.default_rng(3)
    middles = (finite[1:] + finite[:-1]) / 2
    some = np.concatenate(
        [
            middles,
            rng.uniform(-largest, largest, 20_000),
            rng.standard_normal(20_000),
            finite,
            np.exp2(rng.uniform(-30, 8, 20_000)),
        ]
    ).astype(np.float32)
    some = some[np.abs(some) <= largest].astype(np.float64)
    found = np.array(tc.tensor(some).to(tc.float32).to(getattr(tc, name)).float().tolist())
    above = np.searchsorted(finite, np.abs(some)).clip(1, len(finite) - 1)
    low, high = finite[above - 1], finite[above]
    up = np.abs(some) - low > high - np.abs(some)
    even = (np.abs(some) - low == high - np.abs(some)) & (above % 2 == 0)
    np.testing.assert_array_equal(np.abs(found), np.where(up | even, high, low))
    assert (np.sign(found) == np.sign(some))[found != 0].all()


@pytest.mark.parametrize("name", FORMATS)
def test_beyond_the_largest(name):
    beyond = FORMATS[name][3]
    found = tc.tensor([math.inf, -math.inf, math.nan, 1e30]).to(getattr(tc, name)).tolist()
    assert str(found[0]) == str(beyond) and str(found[3]) == str(beyond)
    assert math.isnan(found[2]) and (math.isnan(beyond) or found[1] == -beyond)


def test_powers_of_two():
    values = codes("float8_e8m0fnu").tolist()
    assert values[:255] == [2.0 ** (code - 127) for code in range(255)] and math.isnan(values[255])
    found = tc.tensor([1.0, 1.4, 1.5, -3.0, 6.0, math.inf]).to(tc.float8_e8m0fnu).tolist()
    assert found[:5] == [1.0, 1.0, 2.0, 4.0, 8.0] and math.isnan(found[5])


@pytest.mark.parametrize(
    "other", ["bool", "uint8", "int32", "int64", "uint64", "float16", "bfloat16", "float64", "complex64"]
)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_every_dtype_by_way_of_float32(other):
    given = tc.tensor([0.0, 1.0, 3.0, 20.0]).to(getattr(tc, other))
    for name in NAMES:
        narrow = getattr(tc, name)
        expected = given.to(tc.float32).to(narrow)
        assert given.to(narrow).view(tc.uint8).tolist() == expected.view(tc.uint8).tolist()
        assert expected.to(given.dtype).tolist() == expected.to(tc.float32).to(given.dtype).tolist()


def test_strides_chunks_and_broadcasting():
    wide = tc.randn(70, 90, dtype=tc.float64)
    narrow = wide.t()[::-2].to(tc.float8_e5m2)
    assert narrow.shape == (45, 70)
    assert narrow.tolist() == wide.t()[::-2].contiguous().to(tc.float8_e5m2).tolist()
    target = tc.empty(3, 1000, dtype=tc.float8_e4m3fn)
    target.copy_(tc.arange(1000) % 16)
    assert target.float()[2].tolist() == [float(i % 16) for i in range(1000)]
    back = tc.zeros(1000, 3, dtype=tc.int16)
    back.t().copy_(target)
    assert back[:, 1].tolist() == [i % 16 for i in range(1000)]


@pytest.mark.parametrize("name", NAMES)
def test_moving_elements(name):
    narrow = getattr(tc, name)
    wide = tc.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
    x, rows, mask = wide.to(narrow), tc.tensor([1, 0]), tc.tensor([[True, False, True], [False, True, True]])
    moves = [
        lambda t: t.clone(),
        lambda t: t.t().contiguous(),
        lambda t: t.reshape(-1),
        lambda t: t[1],
        lambda t: t[:, ::2],
        lambda t: t[rows],
        lambda t: t[mask],
        lambda t: t.index_select(0, rows),
        lambda t: t.flip(0),
        lambda t: t.roll(1),
        lambda t: tc.cat([t, t]),
        lambda t: tc.stack([t, t]),
        lambda t: t.repeat(2, 1),
        lambda t: t.gather(1, rows[:, None]),
        lambda t: tc.where(mask, t, 2.0),
        lambda t: t.masked_fill(mask, 4),
        lambda t: t.tril(),
        lambda t: t.expand(2, 2, 3),
        lambda t: tc.constant_pad_nd(t, [1, 1], 2.0),
        lambda t: t.index_fill(0, rows[:1], 2.0),
        lambda t: t.diagonal(),
        lambda t: t.index_copy(0, rows, t),
        lambda t: t.scatter(0, rows[:, None], 0.5),
        lambda t: t.masked_select(mask),
        lambda t: tc.full_like(t, 2),
        lambda t: tc.ones_like(t),
        lambda t: t.take(rows),
        lambda t: t.unfold(1, 2, 1),
    ]
    for number, move in enumerate(moves):
        found, expected = move(x), move(wide).to(narrow)
        assert found.dtype is narrow, number
        assert found.tolist() == expected.tolist(), number
    assert x.tolist() == wide.tolist()


def test_writing_in_place():
    x = tc.zeros(2, 3, dtype=tc.float8_e4m3fn)
    version = x._version
    x[0] = 1.5
    x[tc.tensor([1])] = tc.tensor([[2.0, 3.0, 4.0]]).to(tc.float8_e4m3fn)
    x.masked_fill_(x == 4, 8)
    assert x.tolist() == [[1.5, 1.5, 1.5], [2.0, 3.0, 8.0]] and x._version > version
    assert x.fill_(0.3).tolist() == [[0.3125] * 3] * 2
    assert x.zero_().view(tc.uint8).tolist() == [[0] * 3] * 2
    out = tc.empty(0, dtype=tc.float8_e4m3fn)
    tc.cat([x, x], out=out)
    assert out.shape == (4, 3) and out.dtype is tc.float8_e4m3fn
    before = x.clone()
    with pytest.raises(RuntimeError):
        x[0] = tc.ones(3)[None].expand(1, 3).index_select(1, tc.tensor([0])).repeat(1, 2)
    assert x.tolist() == before.tolist()


def test_views_of_other_dtypes():
    x = tc.tensor([1.0, -2.0, 0.5, 4.0]).to(tc.float8_e5m2)
    assert x.element_size() == x.itemsize == 1 and x.nbytes == 4
    bits = x.view(tc.uint8)
    assert bits.tolist() == [0x3C, 0xC0, 0x38, 0x44]
    bits[0] = 0x40
    assert x[0].item() == 2.0
    assert x.view(tc.float32).shape == (1,) and x.view(tc.float32).view(tc.float8_e5m2).tolist() == x.tolist()
    assert (bits + 1).dtype is tc.uint8, "a view as bytes computes again"
    assert tc.ones(2).view(tc.float8_e5m2).shape == (8,)


def test_questions():
    x = tc.tensor([1.0, math.nan, math.inf, 0.0]).to(tc.float8_e5m2)
    assert (x == x).tolist() == [True, False, True, True] and (x != 1).tolist() == [False, True, True, True]
    assert x.isnan().tolist() == [False, True, False, False] and x.isinf().tolist() == [
        False,
        False,
        True,
        False,
    ]
    assert x.isfinite().tolist() == [True, False, False, True]
    assert x.any().item() is True and x.all().item() is False and x.nonzero().tolist() == [[0], [1], [2]]
    assert 1.0 in x and float(x[0]) == 1.0 and bool(x[0]) and int(x[0]) == 1 and f"{x[0]:.2f}" == "1.00"
    assert (tc.tensor([2.25, 1.0]).to(tc.float8_e4m3fn) == 2.3).tolist() == [True, False], (
        "in its own precision"
    )


def test_products_and_sums_in_float32():
    a, b = (tc.randn(4, 8).to(tc.float8_e4m3fn) for _ in range(2))
    found = a @ b.t()
    assert found.dtype is tc.float8_e4m3fn
    assert found.tolist() == (a.float() @ b.float().t()).to(tc.float8_e4m3fn).tolist()
    assert a.sum(dtype=tc.float32).item() == a.float().sum().item()
    assert a.abs().tolist() == a.float().abs().tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + x,
        lambda x: x * 2,
        lambda x: x + 1.0,
        lambda x: -x,
        lambda x: x.exp(),
        lambda x: x.sum(),
        lambda x: x.softmax(0),
        lambda x: x.sort(),
        lambda x: x.max(),
        lambda x: x < x,
        lambda x: x.cumsum(0),
        lambda x: x.uniform_(),
        lambda x: x.normal_(),
        lambda x: x.add_(1),
        lambda x: x.clamp(0, 1),
        lambda x: x.mean(),
        lambda x: tc.arange(3, dtype=x.dtype),
        lambda x: tc.rand(3, dtype=x.dtype),
        lambda x: tc.ones(3).sum(dtype=x.dtype),
        lambda x: tc.ones(3).cumsum(0, dtype=x.dtype),
        lambda x: tc.add(tc.ones(4), tc.ones(4), out=x),
        lambda x: x.index_add(0, tc.tensor([0]), x[:1]),
        lambda x: x.unique(),
    ],
)
def test_arithmetic_is_refused(call):
    x = tc.tensor([1.0, 2.0, 3.0, 4.0]).to(tc.float8_e4m3fn)
    with pytest.raises(NotImplementedError, match="float8_e4m3fn"):
        call(x)
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x + y,
        lambda x, y: tc.cat([x, y]),
        lambda x, y: x == y,
        lambda x, y: tc.where(y > 0, x, y),
    ],
)
def test_no_dtype_in_common(call):
    x = tc.ones(2, dtype=tc.float8_e4m3fn)
    for y in (tc.ones(2), tc.ones(2, dtype=tc.int64), tc.ones(2, dtype=tc.float8_e5m2)):
        with pytest.raises(RuntimeError, match="float8"):
            call(x, y)
    with pytest.raises(RuntimeError, match="float8_e4m3fn and bool"):
        tc.promote_types(tc.float8_e4m3fn, tc.bool)
    assert tc.promote_types(tc.float8_e4m3fn, tc.float8_e4m3fn) is tc.float8_e4m3fn
    with pytest.raises(TypeError):
        tc.set_default_dtype(tc.float8_e5m2)
    with pytest.raises(RuntimeError):
        tc.float8_e5m2.to_complex()


def test_text():
    assert repr(tc.tensor([1.0, 2.0]).to(tc.float8_e4m3fn)) == "tensor([1., 2.], dtype=taeda.float8_e4m3fn)"
    assert "1.5000" in repr(tc.tensor([1.5, 0.25]).to(tc.float8_e5m2))
    assert (
        repr(tc.float8_e8m0fnu) == "taeda.float8_e8m0fnu"
        and tc.zeros(1, dtype=tc.float8_e5m2).type() == "torch.Float8_e5m2Tensor"
    )
    assert tc.float8_e5m2.is_floating_point and tc.float8_e5m2.is_signed and not tc.float8_e8m0fnu.is_signed
    assert repr(tc.finfo(tc.float8_e4m3fn)).startswith("finfo(resolution=1, min=-448, max=448, eps=0.125")


@pytest.mark.parametrize("name", NAMES)
def test_kept_and_exchanged(name):
    x = tc.tensor([[1.0, 2.0], [4.0, 0.5]]).to(getattr(tc, name))
    for again in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x)), tc.from_dlpack(x)):
        assert again.dtype is x.dtype and again.tolist() == x.tolist()
    for format_ in ("safetensors", "torch"):
        file = io.BytesIO()
        serialization.save({"x": x, "t": x.t()}, file, format=format_)
        file.seek(0)
        found = serialization.load(file)
        assert found["x"].dtype is x.dtype and found["x"].tolist() == x.tolist()
        assert found["t"].tolist() == x.t().tolist()
    for refused in (x.numpy, lambda: np.asarray(x), lambda: memoryview(x)):
        with pytest.raises((TypeError, BufferError), match=name):
            refused()


def test_meta_and_empty():
    x = tc.empty(2, 3, dtype=tc.float8_e4m3fn, device="meta")
    assert tc.cat([x, x]).shape == (4, 3) and x.to(tc.float32).dtype is tc.float32
    with pytest.raises(NotImplementedError):
        x + x
    none = tc.empty(0, 3, dtype=tc.float8_e4m3fn)
    assert tc.cat([none, none]).dtype is tc.float8_e4m3fn and none.float().shape == (0, 3)
