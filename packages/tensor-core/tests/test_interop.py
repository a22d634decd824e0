"""Tensors from Python data; memory shared with NumPy, buffers and DLPack."""

import array
import gc
import operator as python_operator
import weakref
from collections import deque

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_testing.settling import without_collector

NUMPY_DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()),
        (1.5, "float32", ()),
        (True, "bool", ()),
        (1 + 2j, "complex64", ()),
        ([1, 2], "int64", (2,)),
        ([1, 2.5], "float32", (2,)),
        ([True, 2], "int64", (2,)),
        ([[1, 2], [3, 4]], "int64", (2, 2)),
        ((1.0, 2j), "complex64", (2,)),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        (range(3), "int64", (3,)),
        (deque([1, 2]), "int64", (2,)),
        (np.float64(2), "float64", ()),
        (np.arange(3, dtype=np.int16), "int16", (3,)),
        ([np.float64(1), 2], "float64", (2,)),
        ([np.float32(1.5), np.float32(-2)], "float32", (2,)),
        ([np.float16(1.5), np.int8(-2)], "float16", (2,)),
        ([[np.int64(2**62 + 1)], [np.int32(-3)]], "int64", (2, 1)),
        ([np.float32(3), 2.0], "float32", (2,)),
        ([np.ones(2), np.zeros(2)], "float64", (2, 2)),
        ([[[1]], [[2]]], "int64", (2, 1, 1)),
        (array.array("d", [1, 2]), "float64", (2,)),
        ((np.True_, False), "bool", (2,)),
    ],
    ids=str,
)
def test_tensor(data, dtype, shape):
    t = taeda.tensor(data)
    assert t.shape == shape
    assert t.numpy().tolist() == np.array(list(data) if isinstance(data, deque) else data).tolist()
    if not isinstance(data, array.array):
        assert t.dtype is getattr(taeda, dtype)


class Column:
    """A table's column: a sequence with labels, whose iteration gives Python's numbers."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, label):
        return self.values[label - 10]

    def __iter__(self):
        return iter(self.values.tolist())

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint8", "bool", ">f8"])
@pytest.mark.parametrize("make", [taeda.tensor, taeda.as_tensor, taeda.asarray])
def test_columns_keep_their_dtype(make, dtype):
    values = np.array([0, 1, 1]).astype(dtype)
    expected = taeda.tensor(values.astype(values.dtype.newbyteorder("=")))
    made = make(Column(values))
    assert taeda.equal(made, expected) and made.dtype == expected.dtype
    assert make([Column(values), Column(values)]).dtype == expected.dtype
    assert make(Column(values), dtype=taeda.float16).tolist() == [0, 1, 1]
    made[0] = 1  # a copy, as of other sequences
    assert values[0] == 0


def test_columns_of_objects_are_read_as_sequences():
    assert taeda.tensor(Column(np.array([1, 2.5], dtype=object))).dtype == taeda.float32
    with pytest.raises(TypeError, match="must hold numbers, found str"):
        taeda.tensor(Column(np.array(["a", "b"])))


@pytest.mark.parametrize(
    ("data", "kwargs", "error", "text"),
    [
        ([[1, 2], [3]], {}, ValueError, "ragged.*length 2 at dimension 1, found length 1"),
        ([[1, 2], 3], {}, TypeError, "ragged"),
        ([1, [2]], {}, TypeError, "ragged"),
        (
            [np.zeros((3, 3)), np.zeros((3, 0))],
            {},
            ValueError,
            r"ragged.* shape \(3, 3\), found \(3, 0\) at 1",
        ),
        ([[np.zeros(3), np.zeros(2)]], {}, ValueError, "ragged"),
        ([[np.zeros(3), 1.0]], {}, TypeError, r"ragged.* found \(\) at 1"),
        ([taeda.zeros(2), taeda.zeros(3)], {}, ValueError, "ragged"),
        *(
            (data, {}, error, text)
            for data, text in (
                (["a"], "must hold numbers, found str"),
                ("abc", "found str"),
                (None, "found NoneType"),
                ([1, None], "must hold numbers, found NoneType"),
                ([[1], None], "ragged.*found NoneType"),
                ({"a": 1}, "found dict"),
            )
            for error in (TypeError, ValueError, RuntimeError)
        ),
        ([300], {"dtype": taeda.uint8}, OverflowError, "300, out of range for dtype uint8"),
        ([-256], {"dtype": taeda.uint8}, OverflowError, "-256"),
        ([2**63], {"dtype": taeda.int64}, OverflowError, "9223372036854775808"),
        (2**70, {}, OverflowError, "64 bits"),
        ([float("nan")], {"dtype": taeda.int32}, ValueError, "nan"),
        ([float("nan")], {"dtype": taeda.int32}, RuntimeError, "nan"),
        ([1j], {"dtype": taeda.float32}, TypeError, "complex"),
        ([1], {"dtype": "float32"}, TypeError, "dtype"),
        ([1], {"device": 1.5}, TypeError, "device"),
        ([1], {"color": 1}, TypeError, "unexpected keyword argument 'color'"),
        (np.array(["a"]), {}, TypeError, "<U1"),
        (np.arange(3).astype(">i4"), {}, ValueError, "foreign byte order"),
    ],
    ids=str,
)
def test_tensor_errors(data, kwargs, error, text):
    with pytest.raises(error, match=text):
        taeda.tensor(data, **kwargs)


def test_tensor_copies_and_converts():
    source = np.ones(3, np.float32)
    t = taeda.tensor(source)
    t[0] = 5
    assert source[0] == 1
    with pytest.warns(UserWarning, match=r"sourceTensor\.detach\(\)\.clone\(\)"):
        again = taeda.tensor(t, dtype=taeda.float64)
    assert again.dtype is taeda.float64
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert taeda.tensor(t).data_ptr() != t.data_ptr()
    assert taeda.tensor([1.7, -1.7], dtype=taeda.int32).tolist() == [1, -1]
    assert taeda.tensor([0, 2.5], dtype=taeda.bool).tolist() == [False, True]
    assert taeda.tensor([2**64 - 1], dtype=taeda.uint64).tolist() == [2**64 - 1]
    assert taeda.tensor([1.0, 2.0], device="meta").device.type == "meta"
    assert taeda.tensor([taeda.tensor(1), taeda.tensor(2)]).tolist() == [1, 2]


def test_as_tensor_and_asarray_share():
    source = np.ones(3, np.float32)
    for function in (taeda.as_tensor, taeda.asarray):
        t = function(source)
        t[1] = 7
        assert source[1] == 7
        assert function(t) is t
        assert function(source, dtype=taeda.float64).dtype is taeda.float64
    assert taeda.asarray(source, copy=True).data_ptr() != source.ctypes.data
    assert taeda.asarray(source, copy=False).data_ptr() == source.ctypes.data
    with pytest.raises(ValueError, match="copy"):
        taeda.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="copy"):
        taeda.asarray(source, dtype=taeda.int8, copy=False)


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_numpy_round_trip(name):
    source = np.arange(12).reshape(3, 4).astype(name)
    for view in (
        source,
        source.T,
        source[::-1],
        source[:, ::-2],
        source[1:1],
        source[0, 0:1],
        np.broadcast_to(source, (2, 3, 4)),
    ):
        t = taeda.from_numpy(view) if view.flags.writeable else taeda.as_tensor(view)
        assert t.dtype is getattr(taeda, name) and t.shape == view.shape
        back = t.numpy()
        assert back.dtype == view.dtype and np.array_equal(back, view)
        if view.size:
            assert back.ctypes.data == view.ctypes.data and back.strides == view.strides


def test_numpy_shares_both_ways():
    source = np.zeros(4)
    t = taeda.from_numpy(source[::-1])
    t[0] = 1
    assert source[3] == 1 and np.asarray(t)[0] == 1
    back = t.numpy()
    back[1] = 2
    assert source[2] == 2 and t[1].item() == 2


def test_functions_of_numpy_give_tensors():
    t = taeda.tensor([1.0, 4.0])
    roots = np.sqrt(t)
    assert type(roots) is taeda.Tensor and roots.dtype is taeda.float32 and roots.tolist() == [1.0, 2.0]
    larger = np.maximum(np.array([2.0, 2.0]), t)
    assert type(larger) is taeda.Tensor and larger.dtype is taeda.float64 and larger.tolist() == [2.0, 4.0]
    parts, whole = np.modf(t + 0.25)
    assert parts.tolist() == [0.25, 0.25] and whole.tolist() == [1.0, 4.0]
    number = np.exp(taeda.tensor(0.0))
    assert type(number) is taeda.Tensor and number.shape == () and number.item() == 1.0


def test_truth_values_of_numpy_become_uint8():
    above = np.greater(taeda.tensor([1.0, 4.0]), 2)
    assert type(above) is taeda.Tensor and above.dtype is taeda.uint8 and above.tolist() == [0, 1]


def test_wrapped_arrays_share_their_memory():
    array = np.zeros(2)
    taeda.zeros(2).__array_wrap__(array)[0] = 3.0
    assert array.tolist() == [3.0, 0.0]


def test_memory_outlives_its_maker():
    source = np.arange(1000.0)
    gone = weakref.ref(source)
    t = taeda.from_numpy(source)
    del source
    gc.collect()
    assert gone() is not None and t[-1].item() == 999
    del t
    assert gone() is None
    array_ = taeda.arange(1000).numpy()
    gc.collect()
    assert array_[-1] == 999


def test_readonly_arrays():
    source = np.zeros(3)
    source.flags.writeable = False
    t = taeda.from_numpy(source)
    for change in (lambda: t.add_(1), lambda: t.fill_(1), lambda: t.__setitem__(0, 1), lambda: t[1:].mul_(2)):
        with pytest.raises(RuntimeError, match="read-only"):
            change()
    assert not t.numpy().flags.writeable and (t + 1).tolist() == [1, 1, 1]
    assert t._version == 0 and source.tolist() == [0, 0, 0]


def test_from_numpy_errors():
    with pytest.raises(TypeError, match="from_numpy"):
        taeda.from_numpy([1, 2])
    with pytest.raises(ValueError, match="byte order"):
        taeda.from_numpy(np.arange(3).astype(">f4"))
    with pytest.raises(TypeError, match="no corresponding dtype"):
        taeda.from_numpy(np.array([object()]))
    with pytest.raises(ValueError, match="multiple"):
        taeda.from_numpy(np.zeros(4, np.dtype([("a", "i1"), ("b", "f4")]))["b"])
    with pytest.raises(TypeError, match="bfloat16"):
        taeda.zeros(1, dtype=taeda.bfloat16).numpy()
    with pytest.raises(TypeError, match="meta"):
        taeda.zeros(1, device="meta").numpy()


def test_operators_with_arrays():
    t, a = taeda.ones(2), np.array([1.0, 2.0], np.float32)
    for result in (t + a, a + t, a * t, t - a, a - t):
        assert type(result) is taeda.Tensor
    assert (a - t).tolist() == [0, 1]
    assert (np.float32(2) * t).tolist() == [2, 2] and (t * np.float64(2)).dtype is taeda.float32
    assert np.asarray(t, dtype=np.float64).dtype == np.float64 and np.sin(t).dtype is taeda.float32


class Kept(taeda.Tensor):
    """Results keep their class."""


class Refusing(taeda.Tensor):
    """Answers for functions itself, and computes with tensors alone."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is not taeda.Tensor.__array_wrap__ and not all(isinstance(a, taeda.Tensor) for a in args[:2]):
            raise TypeError("tensors only")
        return super().__torch_function__(func, types, args, kwargs)


class Ufuncs(Kept):
    """Leaves arrays to NumPy."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return getattr(ufunc, method)(*(np.asarray(i) for i in inputs), **kwargs)


BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("made", [taeda.Tensor, Kept, Refusing, Ufuncs])
def test_operators_of_classes_with_arrays(made, dtype, name):
    function = getattr(python_operator, name)
    ours, array = np.array([3.0, 5.0], np.float32), np.array([1.5, 5.0], dtype)
    result, expected = function(taeda.tensor(ours).as_subclass(made), array), function(ours, array)
    assert type(result) is (made if made is not Ufuncs else type(expected))
    np.testing.assert_allclose(np.asarray(result), expected)
    assert np.asarray(result).dtype == expected.dtype
    if made is Ufuncs or name != "matmul":
        swapped = function(array, taeda.tensor(ours).as_subclass(made))
        np.testing.assert_allclose(np.asarray(swapped), function(array, ours), rtol=1e-6)
    with pytest.raises(TypeError):
        python_operator.add(taeda.ones(2).as_subclass(made), object())


@pytest.mark.parametrize("made", [taeda.Tensor, Kept, Refusing])
@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ipow"])
def test_operators_of_classes_that_write_take_arrays(made, name):
    x = taeda.tensor([3.0, 5.0]).as_subclass(made)
    result = getattr(python_operator, name)(x, np.array([2.0, 4.0]))
    assert result is x and type(x) is made
    expected = getattr(python_operator, name[1:])(np.array([3.0, 5.0]), np.array([2.0, 4.0]))
    np.testing.assert_allclose(np.asarray(x), expected)
    whole = taeda.tensor([3, 5]).as_subclass(made)
    widened = getattr(python_operator, name)(whole, np.array([0.5, 1.5]))
    assert widened is not whole and whole.tolist() == [3, 5]


@pytest.mark.parametrize("made", [taeda.Tensor, Kept, Refusing])
@pytest.mark.parametrize("other", [object(), [1.0, 2.0], "a", None, np.datetime64("2020-01-01")])
def test_operands_that_are_no_numbers(made, other):
    """Refused whatever the class, also where a class has a second place for the operator."""
    x = taeda.tensor([3.0, 5.0]).as_subclass(made)
    for name in ("add", "iadd", "imul", "isub", "iand", "itruediv", "ipow", "lt"):
        with pytest.raises(TypeError):
            getattr(python_operator, name)(x, other)
    assert (x == other) is False and (x != other) is True and x.tolist() == [3, 5]


@pytest.mark.parametrize("made", [taeda.Tensor, Kept])
def test_adding_in_place_what_adds_by_itself(made):
    class Adds:
        def __radd__(self, left):
            return "added"

    x = taeda.ones(2).as_subclass(made)
    x += Adds()
    assert x == "added"


@pytest.mark.parametrize("left", [np.float64(2), np.int64(2), 2, 2.0, 10**400])
def test_numbers_have_no_matrix_product(left):
    for operands in ((left, taeda.ones(2)), (taeda.ones(2), left)):
        with pytest.raises(TypeError, match="@"):
            python_operator.matmul(*operands)


def test_frombuffer():
    raw = bytearray(b"\x01\x02\x03\x04\x05\x06\x07\x08")
    t = taeda.frombuffer(raw, dtype=taeda.uint8)
    t[0] = 9
    assert raw[0] == 9 and taeda.frombuffer(raw, dtype=taeda.int16, count=2, offset=2).tolist() == [
        0x0403,
        0x0605,
    ]
    with pytest.raises(BufferError):
        raw.extend(b"x")
    readonly = taeda.frombuffer(b"ab", dtype=taeda.uint8)
    with pytest.raises(RuntimeError, match="read-only"):
        readonly.add_(1)
    for kwargs, text in [
        ({"offset": 9}, "offset"),
        ({"count": 100}, "count"),
        ({"offset": 1, "dtype": taeda.int16}, "multiple"),
    ]:
        with pytest.raises(ValueError, match=text):
            taeda.frombuffer(raw, **{"dtype": taeda.uint8, **kwargs})

    with pytest.raises(ValueError, match="buffer protocol, found list"):
        taeda.frombuffer([1, 2], dtype=taeda.uint8)


def test_asarray_of_bytes_groups_them():
    numbers = np.array([1.5, -2, 3], np.float32)
    memory = bytearray(numbers.tobytes())
    shared = taeda.asarray(memory)
    assert shared.dtype is taeda.float32 and shared.tolist() == numbers.tolist()
    shared[0] = 4
    assert np.frombuffer(memory, np.float32)[0] == 4
    assert taeda.asarray(memory, dtype=taeda.int16).tolist() == np.frombuffer(memory, np.int16).tolist()
    assert taeda.asarray(bytes(memory), dtype=taeda.uint8).tolist() == list(memory)
    halves = np.ones(3, np.float16)
    over = taeda.asarray(memoryview(halves), dtype=taeda.float16)
    assert over.tolist() == [1, 1, 1] and over.data_ptr() == halves.ctypes.data
    copied = taeda.asarray(memory, copy=True)
    copied[0] = 9
    assert shared[0] == 4 and taeda.asarray(memory, copy=False).data_ptr() == shared.data_ptr()
    with pytest.raises(ValueError, match="no multiple of the item size 4"):
        taeda.asarray(b"abc")
    assert taeda.asarray(array.array("d", [1, 2]), dtype=taeda.float64).tolist() == [1, 2]
    capsule = shared.__dlpack__()
    assert taeda.asarray(capsule).data_ptr() == shared.data_ptr()


def test_buffer_protocol():
    t = taeda.arange(6).reshape(2, 3)
    view = memoryview(t)
    assert view.shape == (2, 3) and view.format == "l" and view.tolist() == [[0, 1, 2], [3, 4, 5]]
    view[0, 0] = 7
    assert t[0, 0].item() == 7
    # Bytes are made of the numbers, as of those of a list.
    for kind in (taeda.uint8, taeda.int64, taeda.bool):
        assert bytes(taeda.tensor([1, 0], dtype=kind)) == b"\x01\x00"
    assert bytes(taeda.tensor(3)) == bytes(3) and bytes(taeda.tensor([[65], [66]])) == b"AB"
    with pytest.raises(TypeError):
        bytes(taeda.tensor([1.0]))
    with pytest.raises(ValueError, match="range"):
        bytes(taeda.tensor([256]))
    with pytest.raises(BufferError):
        memoryview(taeda.zeros(1, dtype=taeda.bfloat16))


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_dlpack_with_numpy(name):
    source = np.arange(12).reshape(3, 4).astype(name)
    t = taeda.from_dlpack(source)
    assert (
        t.dtype is getattr(taeda, name)
        and t.data_ptr() == source.ctypes.data
        and np.array_equal(t.numpy(), source)
    )
    back = np.from_dlpack(t.T)
    assert np.array_equal(back, source.T) and back.ctypes.data == source.ctypes.data
    assert taeda.from_dlpack(t[::-1]).tolist() == source[::-1].tolist()


def test_dlpack_protocol():
    t = taeda.ones(2, 3)
    assert t.__dlpack_device__() == (1, 0)
    assert '"dltensor"' in repr(t.__dlpack__()) and "dltensor_versioned" in repr(
        t.__dlpack__(max_version=(1, 0))
    )
    assert "dltensor_versioned" in repr(t.__dlpack__(max_version=(2, 0), dl_device=(1, 0), copy=True))
    capsule = t.__dlpack__(max_version=(1, 1))
    shared = taeda.from_dlpack(capsule)
    shared[0, 0] = 9
    assert t[0, 0].item() == 9
    with pytest.raises(BufferError, match="consumed"):
        taeda.from_dlpack(capsule)
    assert taeda.from_dlpack(t, copy=True).data_ptr() != t.data_ptr()
    with pytest.raises(TypeError, match="__dlpack__"):
        taeda.from_dlpack([1])
    with pytest.raises(BufferError, match="dl_device"):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="meta"):
        taeda.empty(1, device="meta").__dlpack__()
    assert taeda.from_dlpack(taeda.ones(2, dtype=taeda.bfloat16)).dtype is taeda.bfloat16


def test_dlpack_readonly():
    source = np.zeros(2)
    source.flags.writeable = False
    t = taeda.from_numpy(source)
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    shared = taeda.from_dlpack(t)
    with pytest.raises(RuntimeError, match="read-only"):
        shared.add_(1)


def test_dlpack_memory():
    with without_collector():
        before = taeda._C._live_bytes()
        t = taeda.zeros(1000)
        capsule = t.__dlpack__(max_version=(1, 0))
        del t
        assert taeda._C._live_bytes() == before + 4000
        shared = taeda.from_dlpack(capsule)
        del capsule
        assert taeda._C._live_bytes() == before + 4000
        del shared
        assert taeda._C._live_bytes() == before
        unused = taeda.zeros(1000).__dlpack__()
        del unused
        assert taeda._C._live_bytes() == before


def test_dlpack_stream_of_the_cpu():
    t = taeda.ones(3)
    for stream in (None, 0, -1):
        t.__dlpack__(stream=stream)
    with pytest.raises(TypeError, match="__dlpack__: argument 'stream' must be an int, found str"):
        t.__dlpack__(stream="a")
    with pytest.raises(BufferError, match="'stream' is 2, expected None"):
        t.__dlpack__(stream=2)


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64])
def test_sizes_of_storages_may_be_numbers_of_numpy(kind):
    assert taeda.UntypedStorage(kind(3)).nbytes() == 3 and taeda.FloatStorage(kind(3)).size() == 3


@pytest.mark.parametrize("make", [taeda.Tensor, taeda.FloatTensor])
def test_arrays_without_dimensions_are_data_unless_they_are_whole_numbers(make):
    for number in (1.5, True):
        made = make(np.array(number))
        assert made.shape == () and made.dtype is taeda.float32 and made.item() == number
    assert make(np.array(3)).shape == (3,) == make(np.int64(3)).shape
    assert taeda.zeros(np.array(2)).shape == (2,)
    with pytest.raises(TypeError, match=r"zeros.*ndarray"):
        taeda.zeros(np.array(2.0))


def test_long_doubles_are_numbers():
    number = np.longdouble(1.5)
    assert taeda.tensor(number).item() == 1.5 and taeda.full((2,), number).tolist() == [1.5, 1.5]
    assert (taeda.ones(2) + number).tolist() == [2.5, 2.5]
    with pytest.raises(TypeError, match="no corresponding dtype"):
        taeda.ones(2) + np.clongdouble(1j)


@pytest.mark.parametrize(
    "others",
    [
        np.array(["a", "b"]),
        np.array([None, 1]),
        np.array([1, 2], "M8[s]"),
        np.datetime64("2020"),
        np.zeros(2, "i4,f4"),
    ],
)
def test_no_tensor_is_equal_to_what_holds_no_numbers(others):
    x = taeda.ones(2)
    assert (x == others) is False and (x != others) is True
    assert (others == x) is False and (others != x) is True
    assert [1, others] != [1, x] and x not in [others]
    with pytest.raises(TypeError):
        x < others  # noqa: B015
    with pytest.raises(TypeError):
        x + others


def test_objects_that_answer_to_any_name_hold_no_elements():
    class Answers:
        def __getattr__(self, name):
            return self

    for call in (taeda.tensor, taeda.as_tensor):
        with pytest.raises(TypeError, match="found Answers"):
            call(Answers())


@pytest.mark.parametrize("operator", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "lt"])
def test_arrays_of_foreign_byte_order_are_operands(operator):
    function, a = getattr(python_operator, operator), np.array([3.0, 4.0])
    b = np.array([1.5, 2.0])
    foreign = b.astype(b.dtype.newbyteorder())
    expected = function(a, b)
    np.testing.assert_array_equal(function(taeda.tensor(a), foreign).numpy(), expected)
    np.testing.assert_array_equal(function(foreign, taeda.tensor(a)).numpy(), function(b, a))
    np.testing.assert_array_equal(
        function(taeda.tensor(a), foreign[0:1].reshape(())).numpy(), function(a, 1.5)
    )
    if operator in ("add", "mul"):
        x = same = taeda.tensor(a)
        x = getattr(python_operator, f"i{operator}")(x, foreign)
        assert x is same
        np.testing.assert_array_equal(x.numpy(), expected)
    with pytest.raises(ValueError, match="foreign byte order"):
        taeda.from_numpy(foreign)


@pytest.mark.parametrize("array", [np.array(2.5), np.array([2.5, 0.5])])
@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"])
def test_arrays_that_widen_the_target_make_a_new_tensor(name, array):
    function, x = getattr(python_operator, name), taeda.tensor([3, 4])
    result = function(x, array)
    expected = getattr(python_operator, name[1:])(np.array([3, 4]), array)
    np.testing.assert_allclose(result.numpy(), expected)
    assert x.tolist() == [3, 4]
    whole = function(taeda.tensor([3, 4]), np.array(2))
    np.testing.assert_allclose(whole.numpy(), getattr(python_operator, name[1:])(np.array([3, 4]), 2))
    with pytest.raises(RuntimeError, match="cannot be stored"):
        function(x, 2.5) if name == "itruediv" else function(x, taeda.tensor([2.5]))


def off_by_one_byte(dtype):
    values = np.arange(6).astype(dtype)
    return np.frombuffer(b"." + values.tobytes(), dtype=dtype, offset=1), values


def between_elements(dtype):
    table = np.zeros(6, dtype=[("flag", "u1"), ("value", dtype)])
    table["value"] = np.arange(6)
    return table["value"], np.arange(6).astype(dtype)


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("make", [off_by_one_byte, between_elements])
def test_arrays_whose_elements_lie_as_no_tensors_may_are_copied_where_nothing_is_to_be_shared(make, dtype):
    array, values = make(dtype)
    for read in (
        taeda.tensor,
        taeda.as_tensor,
        taeda.asarray,
        lambda x: taeda.zeros(6, dtype=taeda.int16) + x,
    ):
        assert read(array).tolist() == values.tolist()
    with pytest.raises(ValueError, match="copy it first"):
        taeda.from_numpy(array)


def test_misaligned_maps_of_files_are_copied(tmp_path):
    (tmp_path / "numbers").write_bytes(b"head!" + np.arange(4, dtype=np.float32).tobytes())
    numbers = np.memmap(tmp_path / "numbers", np.float32, "r", offset=5)
    assert taeda.tensor(numbers).tolist() == taeda.as_tensor(numbers).tolist() == [0, 1, 2, 3]


def test_masked_arrays_are_no_operands():
    array = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    for call in (python_operator.add, python_operator.mul, python_operator.eq, python_operator.lt):
        with pytest.raises(TypeError, match="whose mask would be lost"):
            call(taeda.ones(2), array)
    assert taeda.tensor(array).tolist() == [1, 2]


def test_complex_and_short_names_of_dtypes():
    assert taeda.float32.to_complex() == taeda.complex64 and taeda.float64.to_complex() == taeda.complex128
    for dtype in (taeda.bool, taeda.int64, taeda.uint8):
        with pytest.raises(RuntimeError, match="no complex dtype"):
            dtype.to_complex()
    names = {
        "bool": "b8",
        "uint16": "u16",
        "int8": "i8",
        "bfloat16": "bf16",
        "float64": "f64",
        "complex64": "c64",
    }
    names |= {"float8_e4m3fn": "f8e4m3fn", "complex32": "c32", "bits8": "b8x1", "uint4": "uint4"}
    assert {name: getattr(taeda, name).abbr for name in names} == names
