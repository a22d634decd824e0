"""Python numbers beside tensors: stored, compared, divided by and shifted by, at the ends of each dtype's range."""

import math
import operator
from fractions import Fraction

import pytest

import taeda_tensor_core as taeda

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def ends(dtype):
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def beyond(dtype):
    """Numbers outside the range that still fit into 64 bits."""
    low, high = ends(dtype)
    near = [low - 1, high + 1, 256, -129, 2**31, 2**63, 2**64 - 1, -(2**63)]
    return [n for n in near if not low <= n <= high and -(2**63) <= n < 2**64]


def ints(dtype, *values):
    return taeda.tensor(list(values), dtype=getattr(taeda, dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_a_divisor_that_becomes_zero_in_the_dtype_is_an_error(dtype):
    x = ints(dtype, 1, 2, 3)
    size = 1 + ends(dtype)[1] - ends(dtype)[0]
    for name in ("floor_divide", "remainder", "fmod"):
        divide = getattr(taeda, name)
        with pytest.raises(OverflowError, match=rf"{name}: argument 'other' is {size}, .* {dtype}"):
            divide(x, size)
        with pytest.raises(ZeroDivisionError, match=name):
            divide(x, taeda.tensor(size))
    for mode in ("trunc", "floor"):
        with pytest.raises(ZeroDivisionError, match="div"):
            taeda.div(x, taeda.tensor(size), rounding_mode=mode)
        with pytest.raises(OverflowError, match="div"):
            taeda.div(x, size, rounding_mode=mode)
    with pytest.raises(OverflowError, match="remainder"):
        x.remainder_(size)
    assert x.tolist() == [1, 2, 3]


def test_the_divisor_is_not_written_to():
    divisor = taeda.tensor(7)
    assert (taeda.tensor([15, 16], dtype=taeda.int8) % divisor).tolist() == [1, 2]
    assert divisor.item() == 7
    assert (taeda.tensor([15, 16]) // taeda.tensor([3, 4], dtype=taeda.int8)).tolist() == [5, 4]


def stores(x, number):
    """Every way to store a number: the operator's name and argument, and the call."""
    mask, place = taeda.tensor([True, False]), taeda.tensor([0])
    return [
        ("fill_", "value", lambda: x.fill_(number)),
        ("copy_", "src", lambda: x.copy_(number)),
        ("index assignment", "value", lambda: x.__setitem__(0, number)),
        ("index assignment", "value", lambda: x.__setitem__([0], number)),
        ("masked_fill", "value", lambda: x.masked_fill(mask, number)),
        ("masked_fill", "value", lambda: x.masked_fill_(mask, number)),
        ("index_fill", "value", lambda: x.index_fill_(0, place, number)),
        ("index_put_", "values", lambda: x.index_put_((place,), number)),
        ("scatter", "value", lambda: x.scatter_(0, place, number)),
        ("full", "fill_value", lambda: taeda.full((2,), number, dtype=x.dtype)),
        ("full_like", "fill_value", lambda: taeda.full_like(x, number)),
        ("new_full", "fill_value", lambda: x.new_full((2,), number)),
        ("constant_pad_nd", "value", lambda: taeda.ops.constant_pad_nd(x, [1, 1], number)),
    ]


def mixes(x, number):
    """Ways in which the number's category also decides the dtype of the result."""
    mask = taeda.tensor([True, False])
    return [
        ("where", "self", lambda: taeda.where(mask, number, x)),
        ("where", "other", lambda: taeda.where(mask, x, number)),
        ("add", "alpha", lambda: taeda.add(x, x, alpha=number)),
        ("sub", "alpha", lambda: taeda.sub(x, x, alpha=number)),
        ("addcmul", "value", lambda: taeda.addcmul(x, x, x, value=number)),
        ("linspace", "end", lambda: taeda.linspace(0, number, 3, dtype=x.dtype)),
    ]


@pytest.mark.parametrize(
    ("dtype", "number"), [("uint8", 300), ("int8", 300), ("int32", 2**31), ("int64", 2**63)]
)
def test_a_number_that_does_not_fit_is_not_stored(dtype, number):
    x = ints(dtype, 1, 2)
    for op, argument, call in stores(x, number) + mixes(x, number):
        with pytest.raises(OverflowError) as caught:
            call()
        assert str(caught.value).startswith(
            f"{op}: argument '{argument}' is {number}, out of range for dtype {dtype}"
        )
        assert x.tolist() == [1, 2]


def test_the_ends_of_the_range_fit():
    for dtype in INTS:
        for number in ends(dtype):
            x = ints(dtype, 1, 2)
            for _, _, call in stores(x, number):
                call()
            assert x.tolist()[0] == number
    # As in PyTorch a negative number may stand for its complement.
    assert taeda.zeros(2, dtype=taeda.uint8).fill_(-1).tolist() == [255, 255]
    with pytest.raises(OverflowError):
        taeda.zeros(2, dtype=taeda.uint8).fill_(-256)
    assert taeda.zeros(1, dtype=taeda.uint64).fill_(2**64 - 1).item() == 2**64 - 1
    # Tensors convert.
    assert taeda.zeros(1, dtype=taeda.uint8).fill_(taeda.tensor(300)).item() == 44
    assert taeda.zeros(1, dtype=taeda.float16).fill_(taeda.tensor(1e10)).item() == math.inf
    assert taeda.full((1,), 2.75, dtype=taeda.int8).item() == 2


#: These go through a tensor: what is beyond a half but no float32 becomes infinite there, as in PyTorch.
THROUGH_TENSORS = {"copy_", "index assignment", "index_put_"}


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("float16", 65520.0),
        ("float16", -1e9),
        ("bfloat16", 3.4e38),
        ("float32", 1e39),
        ("complex64", -1e300j),
    ],
)
def test_a_number_beyond_a_floating_dtype_is_not_stored_as_infinity(dtype, number):
    kind, half = getattr(taeda, dtype), dtype in ("float16", "bfloat16")
    for call in range(len(stores(taeda.ones(2), 0))):
        x = taeda.ones(2, dtype=kind)
        op, argument, store = stores(x, number)[call]
        if half and op in THROUGH_TENSORS:
            store()
            assert taeda.isinf(x).any()
            continue
        with pytest.raises(
            OverflowError, match=rf"{op}: argument '{argument}' is .*, out of range for dtype {dtype}"
        ):
            store()
        assert x.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="alpha"):
        taeda.add(x, x, alpha=number)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_the_ends_of_floating_dtypes_and_infinities_fit(dtype):
    kind = getattr(taeda, dtype)
    for number in (taeda.finfo(kind).max, taeda.finfo(kind).min, math.inf, -math.inf):
        x = taeda.ones(2, dtype=kind)
        for _, _, call in stores(x, number):
            call()
        assert x.tolist()[0] == number
        assert math.isnan(abs(x.fill_(math.nan)[0].item()))


def test_float8_stores_only_what_it_has():
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"):
        kind = getattr(taeda, name)
        largest = taeda.finfo(kind).max
        assert taeda.full((1,), largest, dtype=kind).float().item() == largest
        with pytest.raises(OverflowError, match=name):
            taeda.full((1,), largest * 1.5, dtype=kind)
        if name != "float8_e5m2":
            with pytest.raises(OverflowError, match=name):
                taeda.full((1,), math.inf, dtype=kind)


def test_what_no_real_or_integer_dtype_holds():
    for number in (math.nan, math.inf, -math.inf):
        x = ints("int32", 1, 2)
        for op, argument, call in stores(x, number):
            with pytest.raises(ValueError, match=f"{op}: argument '{argument}' is .*int32"):
                call()
        assert x.tolist() == [1, 2]
    x = taeda.zeros(2)
    for op, argument, call in stores(x, 1 + 1j):
        with pytest.raises(RuntimeError, match=f"{op}_?: argument '{argument}'.*complex.*float32"):
            call()
    assert x.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="addcmul: argument 'value'"):
        taeda.addcmul(x, x, x, value=1j)


@pytest.mark.parametrize("dtype", INTS)
def test_comparisons_beyond_the_range_are_right(dtype):
    low, high = ends(dtype)
    x = ints(dtype, low, 0, high)
    for number in beyond(dtype):
        above = number > high
        assert (x == number).tolist() == [False] * 3
        assert (x != number).tolist() == [True] * 3
        assert (x < number).tolist() == (x <= number).tolist() == [above] * 3
        assert (x > number).tolist() == (x >= number).tolist() == [not above] * 3
        assert (number > x).tolist() == [above] * 3
        assert taeda.lt(x, number, out=taeda.empty(3, dtype=taeda.bool)).tolist() == [above] * 3
        assert taeda.logical_and(x, number).tolist() == [low != 0, False, True]
    for number in (low, high):
        assert (x == number).tolist() == [v == number for v in (low, 0, high)]
        assert (x <= number).tolist() == [v <= number for v in (low, 0, high)]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "bitwise_and", "bitwise_or", "pow", "maximum"])
def test_integers_from_2_to_the_63_need_uint64(name):
    operator = getattr(taeda, name)
    with pytest.raises(OverflowError, match=f"{name}: argument .* is {2**63}, out of range for dtype int64"):
        operator(taeda.tensor([1, 2]), 2**63)
    assert operator(taeda.tensor([1], dtype=taeda.uint64), 2**63).dtype == taeda.uint64
    assert (taeda.tensor([2**64 - 2], dtype=taeda.uint64) + 1).tolist() == [2**64 - 1]
    assert (taeda.tensor([2.0]) * 2**63).tolist() == [2.0**64]
    assert (taeda.tensor([2]) / 2**63).item() == 2.0**-62


@pytest.mark.parametrize("name", ["maximum", "floor_divide", "remainder"])
def test_operators_that_are_not_modular_refuse_numbers_beyond_the_range(name):
    for number in (256, -1):
        with pytest.raises(
            OverflowError, match=f"{name}: argument 'other' is {number}, out of range for dtype uint8"
        ):
            getattr(taeda, name)(ints("uint8", 1, 2), number)
    with pytest.raises(OverflowError, match="pow: argument 'exponent' is 256"):
        ints("uint8", 2) ** 256


@pytest.mark.parametrize("dtype", INTS)
def test_bounds_beyond_the_range(dtype):
    low, high = ends(dtype)
    x = ints(dtype, low, 0, high)
    for number in beyond(dtype):
        if number > high:
            assert x.clamp(max=number).tolist() == x.clamp_max(number).tolist() == [low, 0, high]
            unmet = [lambda n=number: x.clamp(min=n), lambda n=number: x.clamp_min(n)]
        else:
            assert x.clamp(min=number).tolist() == x.clamp_min(number).tolist() == [low, 0, high]
            unmet = [lambda n=number: x.clamp(max=n), lambda n=number: x.clamp_max(n)]
        for call in unmet:
            with pytest.raises(OverflowError, match=f"clamp.*{number}.*{dtype}"):
                call()


def test_a_nan_bound_makes_everything_nan():
    x = taeda.tensor([1.0, 2.0])
    for bounds in ({"min": math.nan}, {"max": math.nan}, {"min": 0, "max": math.nan}):
        assert x.clamp(**bounds).isnan().all().item()
    assert x.clamp_(min=math.nan).isnan().all().item()


@pytest.mark.parametrize("dtype", INTS)
def test_shift_counts_are_not_truncated(dtype):
    low, high = ends(dtype)
    x = ints(dtype, low, 1, high)
    fill = [-1 if v < 0 else 0 for v in (low, 1, high)]
    for count in (64, 70, 255, 256, 257, 2**32, 2**63, -1, -256):
        forms = [count] if count == 2**63 else [count, taeda.tensor(count)]
        for given in forms:
            assert taeda.bitwise_left_shift(x, given).tolist() == [0, 0, 0]
            assert taeda.bitwise_right_shift(x, given).tolist() == fill
    assert (ints(dtype, 1) << 3).tolist() == [8]


@pytest.mark.parametrize(
    ("dtype", "after_one", "largest", "smallest"),
    [("float16", 1 + 2**-10, 65504.0, 2.0**-24), ("bfloat16", 1 + 2**-7, (2 - 2**-7) * 2.0**127, 2.0**-133)],
)
def test_nextafter_in_half_precision(dtype, after_one, largest, smallest):
    kind = getattr(taeda, dtype)

    def step(a, b):
        return taeda.nextafter(taeda.tensor([a], dtype=kind), taeda.tensor([b], dtype=kind)).item()

    assert step(1, 2) == after_one and step(after_one, 0) == 1
    assert step(-1, -2) == -after_one and step(-after_one, 0) == -1
    assert step(math.inf, 1) == largest and step(largest, math.inf) == math.inf
    assert step(0, 1) == smallest and step(0, -1) == -smallest and step(smallest, 0) == 0
    assert step(1, 1) == 1 and math.isnan(step(math.nan, 1)) and math.isnan(step(1, math.nan))


@pytest.mark.parametrize("name", ["atan2", "hypot", "copysign", "nextafter", "logaddexp2", "xlogy"])
def test_real_operators_refuse_complex_by_name(name):
    x = taeda.ones(2, dtype=taeda.complex64)
    with pytest.raises(NotImplementedError, match=f"{name}: not implemented for dtype complex64"):
        getattr(taeda, name)(x, x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_operands_without_bits_are_of_a_wrong_type_for_the_tilde(dtype):
    """As Python says of its own numbers: programs catch that."""
    with pytest.raises(
        TypeError, match=rf"bitwise_not \(~\): expected .* integer or bool dtype, found {dtype}"
    ):
        ~taeda.ones(2, dtype=getattr(taeda, dtype))
    assert (~taeda.tensor([1, -3])).tolist() == [~1, ~-3]
    assert (~taeda.tensor([True, False])).tolist() == [False, True]


@pytest.mark.parametrize("value", ["a", None, [1.0], object()])
@pytest.mark.parametrize("error", [TypeError, RuntimeError])
def test_what_is_no_number_is_in_no_tensor(value, error):
    with pytest.raises(
        error, match=f"in: expected a Tensor or a number on the left, found {type(value).__name__}"
    ):
        value in taeda.ones(2)  # noqa: B015
    assert 1.0 in taeda.ones(2) and taeda.tensor(2.0) not in taeda.ones(2)


def test_other_errors_name_the_called_operator():
    x = taeda.ones(2, dtype=taeda.complex64)
    with pytest.raises(NotImplementedError, match=r"histc: .*complex64"):
        taeda.histc(x)
    for name in ("celu", "selu"):
        with pytest.raises(NotImplementedError, match=f"{name}: .*int64"):
            getattr(taeda.ops, name)(taeda.tensor([1]))
    for name in ("zeros", "ones"):
        with pytest.raises(RuntimeError, match=f"{name}: argument 'size'.*-1"):
            getattr(taeda, name)(2, -1)
    with pytest.raises(RuntimeError, match="output_size"):
        taeda.ops.adaptive_avg_pool2d(taeda.ones(1, 1, 3, 3), [-1])
    with pytest.raises(RuntimeError, match=r"^copy_: "):
        taeda.zeros(1).expand(3).copy_(taeda.ones(3))


def test_types_of_python_stand_for_dtypes():
    assert (
        taeda.finfo(float).dtype == "float64"
        and taeda.iinfo(int).dtype == "int64"
        and taeda.finfo(complex).eps == 2.0**-52
    )
    assert taeda.iinfo(int).max == 2**63 - 1
    with pytest.raises(TypeError, match="floating"):
        taeda.finfo(int)
    with pytest.raises(TypeError, match="integer"):
        taeda.iinfo(bool)


class Symbol:
    """What may become a number, and computes with tensors by itself."""

    def __init__(self, value=None):
        self.value = value

    def __float__(self):
        if self.value is None:
            raise TypeError("cannot become a float")
        return self.value

    def __rmul__(self, other):
        return "times", other

    __radd__ = __rsub__ = __rtruediv__ = __rpow__ = __rfloordiv__ = __rmod__ = __rmul__
    __gt__ = __rmul__


class Named(taeda.Tensor):
    pass


@pytest.mark.parametrize("symbol", [Symbol(), Symbol(2.0)])
@pytest.mark.parametrize("name", ["mul", "add", "sub", "truediv", "pow", "floordiv", "mod", "lt"])
def test_operands_that_may_become_numbers_compute_by_themselves(name, symbol):
    for x in (taeda.tensor([1.0, 2.0]), taeda.tensor(3.0).as_subclass(Named)):
        text, other = getattr(operator, name)(x, symbol)
        assert text == "times" and other is x


def test_fractions_are_no_numbers_of_tensors():
    x = taeda.ones(2)
    for call in (
        lambda: x * Fraction(1, 2),
        lambda: Fraction(1, 2) * x,
        lambda: operator.iadd(x, Fraction(1)),
        lambda: taeda.mul(x, Fraction(1, 2)),
    ):
        with pytest.raises(TypeError, match="Fraction"):
            call()
    assert (x == Fraction(1)) is False


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
@pytest.mark.parametrize("wrap", [float, taeda.tensor], ids=["number", "tensor"])
@pytest.mark.parametrize("name", ["fmod", "remainder", "maximum", "minimum", "fmax", "fmin"])
def test_numbers_are_rounded_to_elements_of_sixteen_bits(dtype, wrap, name):
    values = taeda.tensor([-2.0, -0.1, 0.0, 0.1, 0.25, 0.3, 7.0, 100.0], dtype=dtype)
    function, rounded = getattr(taeda, name), taeda.tensor(0.1, dtype=dtype)
    number = taeda.tensor(0.1) if name in ("fmax", "fmin") else wrap(0.1)
    found = function(values, number)
    assert found.dtype == dtype
    assert found.tolist() == function(values.double(), rounded.double()).to(dtype).tolist()
    some = values[values != 0]
    assert function(number, some).tolist() == function(rounded.double(), some.double()).to(dtype).tolist()
    if name in ("fmod", "remainder"):
        assert getattr(values.clone(), name + "_")(number).tolist() == found.tolist()


@pytest.mark.parametrize("kind", [float, int])
def test_complex_numbers_on_the_real_line_become_real_ones(kind):
    assert kind(taeda.tensor(2 + 0j)) == 2 and type(kind(taeda.tensor([2 + 0j]))) is kind
    with pytest.raises(RuntimeError, match=f"{kind.__name__}: a complex number with an imaginary part"):
        kind(taeda.tensor(2 + 1j))
