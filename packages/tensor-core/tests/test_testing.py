"""`assert_close` and `make_tensor`."""

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core.testing import FileCheck, _comparison, assert_allclose, assert_close, make_tensor

nan, inf = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (tc.tensor([1.0]), tc.tensor([1.0 + 1e-6]), {}),
        (tc.tensor([inf, -inf]), tc.tensor([inf, -inf]), {}),
        (tc.tensor([nan]), tc.tensor([nan]), {"equal_nan": True}),
        (tc.ones(2), tc.ones(2).double(), {"check_dtype": False}),
        (tc.tensor([1.0]), tc.tensor([1.4]), {"rtol": 0, "atol": 0.5}),
        ([1, {"a": tc.ones(2)}], [1, {"a": tc.ones(2)}], {}),
        (None, None, {}),
        (True, True, {}),
        (1.0, 1.0 + 1e-8, {}),
        (np.ones(2), np.ones(2), {}),
        (tc.empty(0), tc.empty(0), {}),
        (tc.tensor([1 + 2j]), tc.tensor([1 + 2j]), {}),
    ],
)
def test_what_is_close(actual, expected, options):
    assert_close(actual, expected, **options)


def test_mappings_that_iterate_over_something_else_are_compared_by_their_keys():
    class Rows(dict):
        def __iter__(self):
            raise TypeError("a table iterates over its rows")

    assert_close(Rows(a=tc.ones(2)), Rows(a=tc.ones(2)))
    with pytest.raises(AssertionError, match=r"failure occurred for item \['a'\]"):
        assert_close(Rows(a=tc.ones(2)), Rows(a=tc.zeros(2)))


@pytest.mark.parametrize(
    ("actual", "expected", "options", "text"),
    [
        (
            tc.tensor([1.0, 2.0, 3.0]), tc.tensor([1.0, 2.0, 4.0]), {},
            r"Mismatched elements: 1 / 3 \(33\.3%\)\nGreatest absolute difference: 1\.0 at index \(2,\) "
            r"\(up to 1e-05 allowed\)\nGreatest relative difference: 0\.25 at index \(2,\)",
        ),
        (
            tc.tensor([1.0]), tc.tensor([2.0]), {"rtol": 0, "atol": 0.5},
            r"\(up to 0\.5 allowed\)\nGreatest relative difference: 0\.5 at index \(0,\) \(up to 0 allowed\)$",
        ),
        (
            1.0, 2.0, {"rtol": 0.25, "atol": 0},
            r"difference: 1\.0 \(up to 0 allowed\)\nRelative difference: 0\.5 \(up to 0\.25 allowed\)$",
        ),
        (tc.tensor([1]), tc.tensor([2]), {}, "Tensor-likes are not equal"),
        (tc.tensor(1.0), tc.tensor(2.0), {}, r"Scalars are not close!\n\nExpected 2.0 but got 1.0"),
        (tc.tensor([nan]), tc.tensor([nan]), {}, "Mismatched elements: 1 / 1"),
        (tc.tensor([inf]), tc.tensor([-inf]), {}, "Mismatched elements: 1 / 1"),
        (tc.ones(2), tc.ones(3), {}, "attribute 'shape' do not match"),
        (tc.ones(2), tc.ones(2).double(), {}, "attribute 'dtype' do not match"),
        (tc.ones(2, 3), tc.ones(3, 2).T, {"check_stride": True}, r"attribute 'stride\(\)' do not match"),
        (tc.ones(2), tc.ones(2, device="meta"), {}, "attribute 'device' do not match"),
        ([1], [1, 2], {}, "length of the sequences mismatch: 1 != 2"),
        ({"a": 1}, {"b": 1}, {}, r"Missing keys in the actual mapping: \['b'\]"),
        ({"a": [1, 2]}, {"a": [1, 3]}, {}, r"failure occurred for item \['a'\]\[1\]"),
        (None, 1, {}, "None mismatch"),
        (True, False, {}, "Booleans mismatch"),
        (1, 1.0, {}, r"\(d\)types do not match"),
        (1.0, 2.0, {}, "Scalars are not close"),
        (tc.ones(1), tc.zeros(1), {"msg": "mine"}, "^mine$"),
        (tc.ones(1), tc.zeros(1), {"msg": lambda text: f"mine: {text}"}, "^mine: Tensor-likes are not close"),
    ],
)  # fmt: skip
def test_what_is_not_close_is_told(actual, expected, options, text):
    with pytest.raises(AssertionError, match=text):
        assert_close(actual, expected, **options)


def test_wrong_calls():
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol' must be either specified or omitted"):
        assert_close(tc.ones(1), tc.ones(1), rtol=1.0)
    with pytest.raises(TypeError, match="No comparison pair was able to handle"):
        assert_close(tc.ones(1), [1.0])
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close("a", "a")
    assert_allclose(tc.ones(1), tc.ones(1).double() + 1e-7, rtol=1e-5, atol=0)


class WholePair(_comparison.TensorLikePair):
    """A class of a test suite: numbers in the place of texts, compared by the mean of what they differ by."""

    def __init__(self, actual, expected, *, mean=False, **options):
        if isinstance(actual, str):
            actual = tc.tensor([float(x) for x in actual.split()])
        super().__init__(actual, expected, **options)
        self.mean = mean

    def compare(self):
        self._compare_attributes(self.actual, self.expected)
        actual, expected = self._equalize_attributes(self.actual, self.expected)
        if not self.mean:
            self._compare_values(actual, expected)
        elif float((actual - expected).abs().mean()) > self.atol:
            self._fail(AssertionError, "too far")


PAIRS = (_comparison.NonePair, _comparison.BooleanPair, _comparison.NumberPair, WholePair)


@pytest.mark.parametrize(
    ("actual", "expected", "options", "said"),
    [
        ("1 2", tc.tensor([1.0, 2.0]), {}, []),
        ("1 2", tc.tensor([1.0, 2.5]), {}, [(AssertionError, (), "Mismatched elements: 1 / 2")]),
        ("1 2", tc.tensor([1.0, 2.5]), {"mean": True, "rtol": 0, "atol": 0.3}, []),
        (["1 2"], [tc.tensor([1.0, 3.0])], {"mean": True, "rtol": 0, "atol": 0.3}, [(AssertionError, (0,), "too far")]),
        ("1 2", tc.ones(3), {}, [(AssertionError, (), "'shape' do not match")]),
        (None, 1, {}, [(AssertionError, (), "None mismatch")]),
        (np.bool_(True), True, {}, []),
        (True, False, {}, [(AssertionError, (), "Booleans mismatch")]),
        (np.float64(2), 2.0, {}, []),
        ([1.0, 2.0], [1.5, 2.5], {}, [(AssertionError, (0,), "Scalars"), (AssertionError, (1,), "Scalars")]),
    ],
)  # fmt: skip
def test_pairs_of_a_test_suite(actual, expected, options, said):
    metas = _comparison.not_close_error_metas(actual, expected, pair_types=PAIRS, **options)
    assert [(meta.type, meta.id) for meta in metas] == [(kind, where) for kind, where, _ in said]
    for meta, (kind, _, text) in zip(metas, said, strict=True):
        error = meta.to_error()
        assert type(error) is kind and text in str(error)
        assert str(meta.to_error("mine")) == "mine"


@pytest.mark.parametrize(
    ("actual", "expected", "options", "kind", "text"),
    [
        ({"a": [1]}, {"a": [1, 2]}, {}, AssertionError, r"length of the sequences[\s\S]* item \['a'\]"),
        ({"a": 1}, {"b": 1}, {}, AssertionError, "Missing keys"),
        (1, "a", {}, TypeError, "No comparison pair was able to handle"),
        (1.0, 1.0, {"rtol": 0.1}, ValueError, "Both 'rtol' and 'atol'"),
    ],
)
def test_pairs_that_cannot_be_made(actual, expected, options, kind, text):
    with pytest.raises(kind, match=text):
        _comparison.not_close_error_metas(actual, expected, pair_types=PAIRS, **options)


def test_tolerances_that_are_given_or_go_by_dtypes():
    found = _comparison.get_tolerances
    assert found(tc.ones(1), rtol=0.5, atol=0.25) == (0.5, 0.25)
    assert found(tc.float64, tc.ones(1), rtol=None, atol=None) == (1.3e-6, 1e-5)
    assert found(tc.int64, rtol=None, atol=None, id=("a",)) == (0.0, 0.0)
    with pytest.raises(ValueError, match="got no atol"):
        found(tc.float64, rtol=0.5, atol=None)


DTYPES = [tc.bool, tc.uint8, tc.int8, tc.int64, tc.float16, tc.bfloat16, tc.float32, tc.float64, tc.complex64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_random_tensors_are_within_limits(dtype):
    tc.manual_seed(0)
    made = make_tensor(
        (20, 30), dtype=dtype, device="cpu", noncontiguous=True, exclude_zero=dtype is not tc.bool
    )
    assert made.shape == (20, 30) and made.dtype is dtype and not made.is_contiguous()
    parts = [made.real, made.imag] if dtype.is_complex else [made.to(tc.float64)]
    assert all(part.min() >= -9 and part.max() < 10 for part in parts)
    assert dtype is tc.bool or not (made == 0).any()
    within = make_tensor(50, dtype=dtype, device="cpu", low=0, high=2) if not dtype.is_complex else made.abs()
    assert within.to(tc.float64).min() >= 0 and (dtype.is_complex or within.to(tc.float64).max() < 2)


@pytest.mark.parametrize("dtype", [tc.float32, tc.complex64, tc.int64, tc.bool], ids=str)
@pytest.mark.parametrize("device", [None, "meta"])
def test_random_tensors_are_made_where_there_is_no_memory(device, dtype):
    with tc.device("meta"):
        made = make_tensor((2, 3), dtype=dtype, device=device)
    assert made.device.type == "meta" and made.shape == (2, 3) and made.dtype is dtype


def test_random_tensors_wrong_limits():
    with pytest.raises(ValueError, match="`low` must be less than `high`"):
        make_tensor(2, dtype=tc.float32, device="cpu", low=2, high=1)
    with pytest.raises(ValueError, match="cannot be NaN"):
        make_tensor(2, dtype=tc.float32, device="cpu", low=nan)
    with pytest.raises(ValueError, match="out of the dtype's range"):
        make_tensor(2, dtype=tc.uint8, device="cpu", low=300, high=400)
    with pytest.raises(ValueError, match="not supported for boolean and integral"):
        make_tensor(2, dtype=tc.int64, device="cpu", requires_grad=True)
    with pytest.raises(ValueError, match="mutually exclusive"):
        make_tensor(2, dtype=tc.float32, device="cpu", noncontiguous=True, memory_format=tc.contiguous_format)
    whole = make_tensor(100, dtype=tc.float32, device="cpu", low=-1e39, high=1e39)
    assert whole.isfinite().all()


TEXT = "a b\nc d e\nf a\nx x x\ny"


@pytest.mark.parametrize(
    "directives",
    [
        lambda f: f.check("a").check("c").check_same("e").check_next("a").check("y"),
        lambda f: f.check("c").check_not("b").check("f"),
        lambda f: f.check_not("z").check("x").check_not("q"),
        lambda f: f.check_count("x", 3, exactly=True).check("y"),
        lambda f: f.check_count("x", 2).check("x"),
        lambda f: f.check_dag("f").check_dag("b").check("x"),
        lambda f: f.check_regex("d.*e").check("f"),
    ],
)
def test_directives_that_a_text_fulfils(directives):
    directives(FileCheck()).run(TEXT)


@pytest.mark.parametrize(
    "directives, message",
    [
        (
            lambda f: f.check("c").check("b"),
            r"Expected to find 'b' but did not find it\nSearched string:\n d e",
        ),
        (lambda f: f.check("c").check_same("f"), "'f' in the same line"),
        (lambda f: f.check("a").check_next("f"), "'f' in the next line"),
        (lambda f: f.check("c").check_not("e").check("f"), "not find 'e' but found it"),
        (lambda f: f.check("c").check_not("y"), "not find 'y' but found it"),
        (lambda f: f.check_not("c").check("d"), "not find 'c'"),
        (lambda f: f.check_count("x", 2, exactly=True), "not find 'x' more than 2 times"),
        (lambda f: f.check_count("x", 4), "find 'x'"),
        (lambda f: f.check_dag("f").check_dag("b").check("c"), "find 'c'"),
        (lambda f: f.check_regex("z+"), "find 'z"),
    ],
)
def test_directives_that_it_does_not(directives, message):
    with pytest.raises(RuntimeError, match=message):
        directives(FileCheck()).run(TEXT)


def test_numbers_of_eight_bits_are_compared():
    for dtype in (tc.float8_e4m3fn, tc.float8_e5m2):
        x = tc.tensor([1.0, -2.0, 0.5]).to(dtype)
        assert_close(x, x.clone())
        with pytest.raises(AssertionError, match="1 / 3"):
            assert_close(x, tc.tensor([1.0, -2.0, 0.75]).to(dtype))
