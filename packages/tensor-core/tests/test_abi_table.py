"""The functions of the C ABI's table under wrong calls: every one ends in a status and a text, none in a crash."""

from __future__ import annotations

import ctypes
import re
from ctypes import byref, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import pytest

import taeda_registry
import taeda_tensor_core as taeda
from taeda_tensor_core import backends

TYPE, VALUE, INDEX, RUNTIME, MISSING, MEMORY, OVERFLOW = 1, 2, 3, 4, 5, 6, 8
RECORDS = (Path(taeda_registry.include_dir()) / "taeda").glob("abi-1.*.txt")
RECORD = max(RECORDS, key=lambda path: int(path.stem.split(".")[1])).read_text()


def members(struct: str) -> list[str]:
    """Names of the members of a struct, from the record of the header."""
    body = re.search(rf"^struct {struct}\n((?:  .*\n)+)", RECORD, re.M).group(1)
    return [re.search(r"(?:\(\*)?(\w+)(?:\)\(.*|(?:\[\d+\])?)$", line).group(1) for line in body.splitlines()]


class Device(ctypes.Structure):
    _fields_ = [("backend", c_int32), ("index", c_int32)]


class Held(ctypes.Union):
    _fields_ = [
        ("pointer", c_void_p),
        ("integer", c_int64),
        ("real", c_double),
        ("parts", c_double * 2),
        ("device", Device),
    ]


class Value(ctypes.Structure):
    _fields_ = [("kind", c_uint32), ("reserved", c_uint32), ("count", c_int64), ("held", Held)]


class Spare(ctypes.Structure):
    """A struct of the plug-in's with any size and nothing but pointers."""

    _fields_ = [("size", c_size_t), ("rest", c_void_p * 60)]


CPU = Device(0, 0)


class Table:
    """The table's functions by name."""

    def __init__(self):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
        base = get(taeda.abi_capsule(), b"taeda.abi")
        for place, name in enumerate(members("taeda_api")[4:]):
            address = c_void_p.from_address(base + 24 + 8 * place).value
            setattr(self, name, ctypes.CFUNCTYPE(c_int32)(address))
        for name in ("last_error", "stream_current", "host_release"):
            getattr(self, name).restype = c_void_p
        self.tensor_release.restype = self.tensor_retain.restype = self.value_release.restype = None

    @property
    def error(self):
        return ctypes.string_at(self.last_error()).decode()


api = Table()


@pytest.fixture
def tensor():
    """A handle of an int64 tensor of shape (2, 3)."""
    made, sizes = c_void_p(), (c_int64 * 2)(2, 3)
    assert api.tensor_empty(2, sizes, None, 4, CPU, byref(made)) == 0
    yield made
    api.tensor_release(made)


def op(name: str) -> c_void_p:
    found = c_void_p()
    assert api.op_find(name.encode(), byref(found)) == 0
    return found


NULL = None
TWO = (c_int64 * 2)(2, 3)
OUT = byref(c_void_p())
BAD = Device(99, 0)


@pytest.mark.parametrize(
    ("function", "arguments", "status", "words"),
    [
        ("tensor_read", (NULL, NULL), VALUE, "tensor_read: the tensor is null"),
        ("tensor_empty", (2, NULL, NULL, 4, CPU, OUT), VALUE, "sizes or strides are null"),
        ("tensor_empty", (-1, TWO, NULL, 4, CPU, OUT), VALUE, "ndim must be from 0 to 64, found -1"),
        ("tensor_empty", (2, TWO, NULL, 20, CPU, OUT), VALUE, "no element type number 20"),
        ("tensor_empty", (2, TWO, NULL, -1, CPU, OUT), VALUE, "no element type number -1"),
        ("tensor_empty", (2, TWO, NULL, 4, BAD, OUT), VALUE, "no backend number 99"),
        ("tensor_empty", (2, TWO, NULL, 4, Device(0, 1), OUT), VALUE, "device index 1 of 'cpu'"),
        ("tensor_empty", (2, TWO, NULL, 4, CPU, NULL), VALUE, "place of the result is null"),
        ("tensor_view", (NULL, 2, TWO, TWO, c_int64(0), OUT), VALUE, "a tensor handle is null"),
        ("tensor_wrap", (NULL, c_size_t(48), CPU, 2, TWO, NULL, 4, 0, NULL, NULL, OUT), VALUE, "found 0"),
        ("tensor_wrap", (NULL, c_size_t(0), CPU, 2, TWO, NULL, 4, 0, NULL, NULL, NULL), VALUE, "is null"),
        ("tensor_to_host", (NULL, NULL, c_size_t(0)), VALUE, "a tensor handle is null"),
        ("tensor_from_host", (NULL, NULL, c_size_t(0)), VALUE, "a tensor handle is null"),
        ("op_at", (0, NULL), VALUE, "place of the result is null"),
        ("op_at", (c_uint32(2**32 - 1), OUT), INDEX, "out of range"),
        ("op_find", (NULL, OUT), VALUE, "no operator named '(null)'"),
        ("op_find", (b"add", NULL), VALUE, "place of the result is null"),
        ("op_read", (NULL, byref(Spare(32))), VALUE, "an operator handle is null"),
        ("op_call", (NULL, NULL, 0, NULL, 0), VALUE, "an operator handle is null"),
        ("op_define", (NULL, OUT), VALUE, "taeda_operator is null or its size is not set"),
        ("op_define", (byref(Spare(0)), OUT), VALUE, "taeda_operator is null or its size is not set"),
        ("op_define", (byref(Spare(8)), OUT), VALUE, "the schema is null"),
        ("backend_register", (NULL, NULL), VALUE, "taeda_backend is null or its size is not set"),
        ("backend_register", (byref(Spare(4)), NULL), VALUE, "taeda_backend is null or its size"),
        ("backend_register", (byref(Spare(16)), NULL), VALUE, "the name is missing"),
        ("backend_find", (NULL, OUT), VALUE, "no backend named '(null)'"),
        ("backend_find", (b"nobody", OUT), VALUE, "no backend named 'nobody'"),
        ("backend_find", (b"cpu", NULL), VALUE, "null"),
        ("kernel_register", (b"add", 0, NULL, NULL, NULL, NULL), VALUE, "the kernel is null"),
        ("kernel_register", (NULL, 0, api.op_at, NULL, NULL, NULL), VALUE, "no operator named '(null)'"),
        ("kernel_register", (b"add", 77, api.op_at, NULL, NULL, NULL), VALUE, "no backend number 77"),
        ("kernel_replace", (b"add", -1, api.op_at, NULL, NULL, NULL), VALUE, "no backend number -1"),
        ("layer_register", (b"add", 3, NULL, NULL, NULL, NULL), VALUE, "the layer is null"),
        ("call_below", (NULL,), VALUE, "expected the call that a layer was given"),
        ("call_below", (byref(Spare(72)),), VALUE, "expected the call that a layer was given"),
        ("generator_reserve", (NULL, CPU, c_uint64(1), NULL, NULL), VALUE, "place of the result is null"),
        ("generator_reserve", (NULL, BAD, c_uint64(1), OUT, OUT), VALUE, "no backend number 99"),
        ("observer_add", (NULL, OUT), VALUE, "taeda_observer is null or its size is not set"),
        ("observer_add", (byref(Spare(32)), NULL), VALUE, "place of the result is null"),
        ("observed_tensors", (NULL, NULL, NULL), VALUE, "expected the call that an observer was given"),
        ("observed_arguments", (NULL, NULL, NULL), VALUE, "expected the call that an observer was given"),
        ("span_begin", (NULL,), VALUE, "taeda_span is null or its size is not set"),
        ("span_end", (NULL,), VALUE, "taeda_span is null or its size is not set"),
        ("activities_stop", (NULL, NULL, NULL), VALUE, "the function to tell is null"),
        ("activities_stop", (api.op_at, NULL, NULL), 4, "nobody has started to note activities"),
        ("value_tensors", (NULL, c_int64(2), byref(Value())), VALUE, "value_tensors"),
        ("value_tensors", (OUT, c_int64(-1), byref(Value())), VALUE, "value_tensors"),
        ("value_tensors", (NULL, c_int64(0), NULL), VALUE, "value_tensors"),
    ],
)
def test_wrong_calls(function, arguments, status, words):
    assert getattr(api, function)(*arguments) == status
    assert words in api.error


def test_what_may_be_null():
    for nothing in (api.tensor_retain, api.tensor_release, api.value_release):
        nothing(NULL)
    api.host_acquire(NULL)
    assert api.stream_current(BAD) is None and api.stream_current(Device(-1, 500)) is None
    assert api.registration_remove(c_uint64(2**63)) == 0
    assert api.observer_remove(c_uint64(2**63)) == 0
    assert api.alert_not_deterministic(NULL) == api.deterministic() == 0
    assert api.set_error(TYPE, NULL) == TYPE and api.error == ""


def test_structs_to_fill_must_say_their_size(tensor):
    assert api.tensor_read(tensor, NULL) == VALUE
    assert api.tensor_read(tensor, byref(Spare(0))) == VALUE
    assert api.op_read(op("add"), NULL) == VALUE
    assert api.op_read(op("add"), byref(Spare(7))) == VALUE and "size is not set" in api.error


def test_a_view_needs_a_place_and_strides(tensor):
    assert api.tensor_view(tensor, 2, TWO, TWO, c_int64(0), NULL) == VALUE
    assert api.tensor_view(tensor, 2, TWO, NULL, c_int64(0), OUT) == VALUE


def value(kind, held=None, count=0, **fields):
    made = Value(kind=kind, count=count)
    if held is not None:
        made.held.pointer = ctypes.cast(held, c_void_p)
    for name, given in fields.items():
        setattr(made.held, name, given)
    return made


def call(name, *arguments):
    given = (Value * max(len(arguments), 1))(*arguments)
    results = (Value * 2)()
    status = api.op_call(op(name), given, len(arguments), results, 2)
    assert status == 0 or [r.kind for r in results] == [0, 0]
    for result in results:
        api.value_release(byref(result))
    return status


def test_right_calls(tensor):
    x = value(1, tensor)
    assert call("add", x, x) == 0
    assert call("add", x, value(3, integer=2), value(3, integer=3)) == 0
    assert call("sum", x, value(3, integer=0)) == 0
    assert call("split", x, value(3, integer=1)) == 0


def test_wrong_kinds_of_arguments(tensor):
    x = value(1, tensor)
    pair = (c_void_p * 2)(tensor, None)
    for name, arguments, status, words in [
        ("add", (x,), TYPE, "add: argument 'other' is missing"),
        ("add", (x, x, x, x), TYPE, "add: expected at most 3 arguments, got 4"),
        ("add", (x, value(0)), TYPE, "add: argument 'other' must not be none"),
        ("add", (x, x, value(0)), TYPE, "add: argument 'alpha' must not be none"),
        ("add", (x, value(1)), VALUE, "add: argument 'other' is a null handle"),
        ("add", (x, value(7)), TYPE, "add: argument 'other' must be a tensor or a number, found a text"),
        ("add", (x, x, x), TYPE, "add: argument 'alpha' must be a number, found a tensor"),
        ("add", (x, value(55)), TYPE, "found a value of unknown kind"),
        (
            "transpose",
            (x, value(5, real=1.0), x),
            TYPE,
            "transpose: argument 'dim0' must be an int, found a float",
        ),
        ("cat", (x,), TYPE, "cat: argument 'tensors' must be a list of tensors, found a tensor"),
        (
            "cat",
            (value(12, pair, 2),),
            TYPE,
            "cat: item 1 of argument 'tensors' must be a tensor, found nothing",
        ),
        (
            "cat",
            (value(12, None, 2),),
            VALUE,
            "argument 'tensors' is a list of tensors of 2 items at a null pointer",
        ),
        ("cat", (value(12, pair, -1),), VALUE, "negative length"),
        (
            "permute",
            (x, value(10, None, 3)),
            VALUE,
            "argument 'dims' is a list of ints of 3 items at a null pointer",
        ),
        ("sum", (x, value(7, None, 4)), TYPE, "'dim' must be a list of ints or nothing, found a text"),
    ]:
        assert call(name, *arguments) == status, name
        assert words in api.error


def test_arrays_of_a_call_must_be_there():
    assert api.op_call(op("add"), NULL, 2, NULL, 0) == VALUE
    assert "add: the array of the arguments or of the results is null" in api.error
    assert api.op_call(op("add"), byref(Value()), 1, NULL, 1) == VALUE


def test_names_of_backends_are_checked():
    for name, words in [
        (b"", "name is missing"),
        (b"my dev", "letters, digits"),
        (b"a:0", "letters, digits"),
    ]:
        spare = Spare(16)
        spare.rest[0] = ctypes.cast(ctypes.c_char_p(name), c_void_p)
        assert api.backend_register(byref(spare), NULL) == VALUE
        assert words in api.error
    spare.rest[0] = ctypes.cast(ctypes.c_char_p(b"hollow"), c_void_p)
    assert api.backend_register(byref(spare), NULL) == VALUE
    for required in ("device_count", "allocate", "release", "copy_from_host", "copy_to_host", "synchronize"):
        assert required in api.error
    assert "hollow" not in backends.names()


def test_half_a_hook_for_profilers_is_refused():
    places = {name: place for place, name in enumerate(members("taeda_backend")[1:])}
    spare = Spare(8 * (1 + len(places)))
    spare.rest[places["name"]] = ctypes.cast(ctypes.c_char_p(b"halfway"), c_void_p)
    # `lack_count` and `reserved` share one place of a pointer.
    shift = sum(name in ("lack_count",) for name in places)
    for name in ("device_count", "allocate", "release", "copy_from_host", "copy_to_host", "synchronize"):
        spare.rest[places[name] - shift] = 1
    spare.rest[places["activities_start"] - shift] = 1
    assert api.backend_register(byref(spare), NULL) == VALUE
    assert "has one of activities_start and activities_stop, expected both or none" in api.error
    assert "halfway" not in backends.names()


# --- descriptions of plug-ins ---


class Plugin(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("major", c_uint32),
        ("minor", c_uint32),
        ("name", ctypes.c_char_p),
        ("distribution", ctypes.c_char_p),
        ("start", ctypes.CFUNCTYPE(c_int32, c_void_p)),
    ]


KEPT = []


def capsule(plugin):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
    KEPT.append(plugin)  # the core knows a plug-in by its address
    return make(ctypes.addressof(plugin), b"taeda.plugin", None)


def described(size=40, major=1, minor=0, name=b"mine", start=lambda table: 0):
    function = ctypes.CFUNCTYPE(c_int32, c_void_p)(start) if start else ctypes.CFUNCTYPE(c_int32, c_void_p)()
    return Plugin(size, major, minor, name, b"taeda-mine", function)


def test_a_plugin_in_a_capsule_starts_once():
    started = []
    plugin = capsule(described(start=lambda table: started.append(table) or 0))
    backends.load(plugin)
    backends.load(lambda: plugin)
    assert len(started) == 1


@pytest.mark.parametrize(
    ("change", "exception", "words"),
    [
        ({"size": 0}, ValueError, "taeda_plugin is null or its size is not set"),
        ({"size": 24}, ValueError, "the size of its description is 24, expected at least 40"),
        ({"start": None}, ValueError, "plug-in 'mine' has no function 'start'"),
        ({"major": 2}, RuntimeError, "pip install --upgrade taeda-tensor-core"),
        ({"name": None, "start": lambda table: 3}, IndexError, "'a plug-in': gave status 3 without a text"),
    ],
)
def test_wrong_descriptions(change, exception, words):
    with pytest.raises(exception, match=re.escape(words)):
        backends.load(capsule(described(**change)))


def test_another_capsule_is_no_plugin():
    with pytest.raises(ValueError, match="incorrect name"):
        backends.load(taeda.abi_capsule())


def test_a_python_exception_in_start_comes_out():
    # Python's own functions are called through ctypes, which prints and swallows: the status is what counts.
    with pytest.raises(NotImplementedError, match="mine"):
        backends.load(capsule(described(start=lambda table: api.set_error(MISSING, b"not on this machine"))))
