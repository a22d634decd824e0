"""What the names in PyTorch's files mean here: storages, tensors, parameters, sizes, devices, dtypes.

The functions check their arguments, because a file may call them with anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import taeda_tensor_core as tc
from taeda_tensor_core import _older_names
from taeda_tensor_core._copies import shown_over
from taeda_tensor_core._lazy import NAMES
from taeda_tensor_core.checkpoint.common import DTYPES, CheckpointError, check_view, fail, is_count, shown
from taeda_tensor_core.errors import UnusableDeviceError
from taeda_tensor_core.storage import TypedStorage, UntypedStorage

STORAGES = {
    **{name: dtype for dtype, name in _older_names.STORAGES.items()}, "UntypedStorage": "uint8",
    "QInt8Storage": "int8", "QUInt8Storage": "uint8", "QInt32Storage": "int32",
}  # fmt: skip
CLASSES = {
    "torch.Tensor": "tensor", "torch._tensor.Tensor": "tensor", "torch.nn.parameter.Parameter": "parameter",
    "torch.nn.Parameter": "parameter", "torch.nested._internal.nested_tensor.NestedTensor": "jagged",
    "torch._dynamo.decorators._DimRange": "range",
}  # fmt: skip


class CallersError(Exception):
    """Carries what a function of the caller's raised past the handlers for malformed files."""


def storage_kind(module: str, name: str) -> str | None:
    """The dtype of a class of storages; None for another name."""
    return STORAGES.get(name) if module in ("torch", "torch.storage") else None


class DimRange:
    """What PyTorch's compiler notes of the sizes of jagged tensors; nothing reads it here."""

    def __setstate__(self, state: Any) -> None:
        """Takes no notice."""


class Storages:
    """The storages of one file, made when they are first referred to; all tensors over one share its `memory`.

    Args:
        bytes_of: gives the uint8 tensor of a key.
        place: moves such a tensor to where it belongs, from its location in the file.
    """

    def __init__(self, bytes_of: Callable[[str], Any], place: Callable[[Any, str], Any]) -> None:
        self._bytes_of, self._place = bytes_of, place
        self.memory: dict[str, Any] = {}

    def __call__(self, reference: Any) -> TypedStorage | UntypedStorage:
        """The storage of a persistent id, or the part of one."""
        wanted = parse_reference(reference)
        key, dtype = wanted.key, wanted.dtype
        if key not in self.memory:
            self.memory[key] = self._place(self._bytes_of(key), wanted.location)
        memory = self.memory[key]
        if memory.numel() != wanted.nbytes:
            fail(
                f"storage {shown(key)} has {memory.numel()} bytes, expected {wanted.count} elements of {dtype}"
            )
        if dtype == "bool" and memory.device.type == "cpu" and (memory > 1).any():
            fail("a bool must be the byte 0 or 1")
        if wanted.part is not None:
            memory = _part(memory, *wanted.part, DTYPES[dtype][1])
        storage = UntypedStorage(memory)
        return storage if wanted.untyped else TypedStorage(wrap_storage=storage, dtype=getattr(tc, dtype))


def _part(memory: Any, begin: int, count: int, item: int) -> Any:
    """Some elements of a storage, which end where the part does."""
    if memory.device.type != "cpu":
        fail(f"the file refers to a part of a storage on device '{memory.device}'; load it to 'cpu' first")
    found = memory[begin * item : (begin + count) * item]
    return (
        tc.frombuffer(found, dtype=tc.uint8)
        if found.numel()
        else tc.empty((0,), dtype=tc.uint8, device="cpu")
    )


class Reference(NamedTuple):
    """What a persistent id says of a storage: `part` is the first element and the number of those that are meant."""

    dtype: str
    key: str
    location: str
    count: int
    untyped: bool = False
    part: tuple[int, int] | None = None

    @property
    def nbytes(self) -> int:
        """Of the whole storage."""
        return self.count * DTYPES[self.dtype][1]


def parse_reference(reference: Any) -> Reference:
    """What a persistent id says."""
    if isinstance(reference, tuple):  # its text is bytes where the caller wants the strings of Python 2 so
        reference = tuple(part.decode("latin-1") if isinstance(part, bytes) else part for part in reference)
    if not isinstance(reference, tuple) or len(reference) not in (5, 6) or reference[0] != "storage":
        fail(f"expected a reference to a storage, found {shown(reference)}")
    _, kind, key, location, count = reference[:5]
    dtype = kind if isinstance(kind, str) and kind in DTYPES else getattr(kind, "storage_dtype", None)
    if not isinstance(dtype, str):
        fail(f"the file refers to a storage of type {shown(kind)}")
    if not isinstance(key, (str, int)) or not isinstance(location, str) or not is_count(count):
        fail(f"the file refers to storage {shown(key)} at {shown(location)} with {shown(count)} elements")
    if isinstance(key, int) and abs(key) >= 1 << 64:
        fail("the file refers to a storage by an int of more than 64 bits")
    untyped = getattr(kind, "storage_name", "") == "UntypedStorage"
    return Reference(dtype, str(key), location, count, untyped, _parse_part(count, *reference[5:]))


def _parse_part(count: int, part: Any = None) -> tuple[int, int] | None:
    """First element and number of a part of a storage, which old files name (key, first element, number)."""
    if part is None:
        return None
    if not isinstance(part, tuple) or len(part) != 3 or not all(map(is_count, part[1:])):
        fail(f"the file refers to {shown(part)} for a part of a storage")
    if part[1] + part[2] > count:
        fail(f"the file refers to elements {part[1]} to {part[1] + part[2]} of a storage of {count}")
    return part[1], part[2]


def rebuild_tensor(
    storage: Any,
    offset: Any,
    shape: Any,
    stride: Any,
    grad: Any = False,
    hooks: Any = None,
    extra: Any = None,
) -> Any:
    """A tensor over a storage."""
    name = storage.dtype.name if isinstance(storage, TypedStorage) else "uint8"
    return _over(storage, name, offset, shape, stride, grad, extra)


def rebuild_typed(
    storage: Any, offset: Any, shape: Any, stride: Any, grad: Any, hooks: Any, dtype: Any, extra: Any = None
) -> Any:
    """A tensor of a dtype that has no class of storages."""
    name = str(dtype).rpartition(".")[2] if isinstance(dtype, tc.dtype) else ""
    if name not in DTYPES:
        fail(f"the file has a tensor of dtype {shown(dtype)}")
    return _over(storage, name, offset, shape, stride, grad, extra)


def _over(storage: Any, dtype: str, offset: Any, shape: Any, stride: Any, grad: Any, extra: Any) -> Any:
    if not isinstance(storage, (TypedStorage, UntypedStorage)):
        fail(f"a tensor of the file has {shown(storage)} for its storage")
    memory = storage.untyped()._tensor
    item = DTYPES[dtype][1]
    if memory.device.type == "meta":  # it has no memory that could be too small
        return rebuild_meta(getattr(tc, dtype), shape, stride, grad)
    check_view(offset, shape, stride, memory.numel() // item, item)
    if any(step < 0 for step in stride):
        fail(f"a tensor of the file has stride {shown(stride)}, expected none below 0")
    whole = memory.numel() // item * item
    out = shown_over(memory[:whole], getattr(tc, dtype), tuple(shape), tuple(stride), offset)
    for bit, undo in (("conj", "conj"), ("neg", "neg")):
        if isinstance(extra, dict) and extra.get(bit) is True:
            out = getattr(out, undo)().contiguous()
    return recorded(out) if grad is True else out


def recorded(tensor: Any) -> Any:
    """The tensor with requires_grad where automatic differentiation is present; without it that means nothing."""
    try:
        return tensor.requires_grad_(True)
    except RuntimeError:
        return tensor


def rebuild_meta(dtype: Any, shape: Any, stride: Any, grad: Any = False) -> Any:
    """A tensor without memory."""
    name = str(dtype).rpartition(".")[2] if isinstance(dtype, tc.dtype) else ""
    if name not in DTYPES:
        fail(f"the file has a tensor of dtype {shown(dtype)}")
    check_view(0, shape, stride, 1 << 62, DTYPES[name][1])
    out = tc.empty_strided(tuple(shape), tuple(stride), dtype=dtype, device="meta")
    return recorded(out) if grad is True else out


def rebuild_parameter(data: Any, grad: Any = True, hooks: Any = None, state: Any = None) -> Any:
    """A parameter of the nn slot's provider, or a leaf tensor where there is none."""
    if not isinstance(data, tc.Tensor):
        fail("a parameter of the file is no tensor")
    data = data.detach()
    cls = parameter_class()
    if cls is not None:
        out = cls(data, grad is True)
    else:
        out = recorded(data) if grad is True else data
    return with_attributes(out, state)


def parameter_class() -> Any:
    """The class of parameters that the nn slot offers; None without one."""
    from taeda_registry import RegistryError
    from taeda_registry.resolution import resolve

    try:
        found = getattr(resolve("nn"), "Parameter", None)
    except RegistryError:
        return None
    return found if isinstance(found, type) and issubclass(found, tc.Tensor) else None


# Attributes of PyTorch's jagged tensors, which their functions are called with too.
_PARTS_OF_JAGGED = ("_values", "_offsets", "_lengths", "_ragged_idx", "_metadata_cache")
# Where things of these slots stand in PyTorch.
SLOTS = {"torch.nn": "nn", "torch.optim": "optim", "torch.utils.data": "data"}
# Modules of slots that are called here as there, whose names do not all stand in the slot's own namespace.
QSCHEMES = (
    "per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams", "per_tensor_symmetric",
    "per_channel_symmetric",
)  # fmt: skip
#: Dtypes that have no tensors of their own: codes, and such as have less than a byte.
NAMED_DTYPES = frozenset(NAMES["_named_dtypes"].split())
SAME_PLACES = (".modules.", ".utils.", ".swa_utils")


def _provider(slot: str, load: bool) -> Any:
    import taeda_registry
    from taeda_registry.resolution import resolve

    if load:
        return resolve(slot)
    active = taeda_registry.active(slot)
    return None if active is None else active.module


def foreign_name(obj: Any) -> tuple[str, str] | None:
    """Module and name under which PyTorch knows a class or function of an active provider; None for others."""
    name, home = getattr(obj, "__qualname__", ""), getattr(obj, "__module__", None) or ""
    if obj is tc.Tensor:
        return "torch", "Tensor"
    for prefix, slot in SLOTS.items():
        module = _provider(slot, load=False)
        if module is None or home.split(".")[0] != module.__name__.split(".")[0]:
            continue
        for inner, place in (
            ("", module),
            (".functional", getattr(module, "functional", None)),
            (".lr_scheduler", getattr(module, "lr_scheduler", None)),
        ):
            if place is not None and getattr(place, name, None) is obj:
                return prefix + inner, name
        rest = home[len(module.__name__) :]
        if rest.startswith(SAME_PLACES):
            return prefix + rest, name
    return None


def native(module: str, name: str) -> Any:
    """What PyTorch's module and name are here; AttributeError or ImportError where there is no such thing."""
    from importlib import import_module

    if module.startswith("torch._C."):  # parts of the compiled module, which are no modules here
        name, module = f"{module[len('torch._C.') :]}.{name}", "torch._C"
    for prefix, slot in SLOTS.items():
        if module == prefix or module.startswith(prefix + "."):
            provider = _provider(slot, load=True)
            try:
                return getattr(import_module(provider.__name__ + module[len(prefix) :]), name)
            except (ImportError, AttributeError):
                return getattr(provider, name)
    try:
        found: Any = tc if module == "torch" else import_module("taeda_tensor_core" + module[len("torch") :])
    except ImportError:
        if "taeda" not in sys.modules:
            raise
        found = import_module("taeda" + module[len("torch") :])  # the whole, where it is in use
    for part in name.split("."):
        found = getattr(found, part)
    return found


def with_attributes(tensor: Any, state: Any) -> Any:
    """The tensor with the attributes that a file gives it."""
    if isinstance(state, dict) and getattr(tensor, "is_nested", False):
        state = {name: value for name, value in state.items() if name not in _PARTS_OF_JAGGED}
    if isinstance(state, dict) and state and all(isinstance(name, str) for name in state):
        tensor.__dict__.update(state)
    elif state:
        fail(f"a tensor of the file has {shown(state)} for its attributes")
    return tensor


def size(sizes: Any = ()) -> Any:
    """A shape."""
    if not isinstance(sizes, (tuple, list)) or len(sizes) > 64 or not all(map(is_count, sizes)):
        fail(f"the file has {shown(sizes)} for a shape")
    return tc.Size(sizes)


def device(*parts: Any) -> Any:
    """A device, or its name where this machine has none of that kind."""
    words = [shown(part).strip("'") for part in parts]
    if (
        not 1 <= len(parts) <= 2
        or not isinstance(parts[0], str)
        or not all(isinstance(p, int) for p in parts[1:])
    ):
        fail(f"the file has {', '.join(words[:3])} for a device")
    try:
        return tc.device(":".join(words))
    except RuntimeError:
        return ":".join(words)


def rebuild_quantized(
    storage: Any, offset: Any, shape: Any, stride: Any, facts: Any, grad: Any = False, hooks: Any = None
) -> Any:
    """A quantized tensor whose codes stand in a storage."""
    from taeda_tensor_core.checkpoint import kinds

    return kinds.quantized(rebuild_tensor(storage, offset, shape, stride), facts)


def _of_kinds(name: str) -> Callable[..., Any]:
    """A function of `kinds`, which is imported when a file needs it."""

    def call(*args: Any) -> Any:
        from taeda_tensor_core.checkpoint import kinds

        return getattr(kinds, name)(*args)

    return call


def _own_kind(home: str) -> Callable[..., Any]:
    """What makes a tensor of a kind that only taeda knows, of its parts."""

    def call(*found: Any) -> Any:
        types = {"packed": (tc.Tensor, str, tuple), "opaque": (tc.Tensor, str)}[home]
        if len(found) != len(types) or not all(map(isinstance, found, types)):
            fail(f"the file makes a tensor of kind {home} of {shown(found)}")
        try:
            from importlib import import_module

            return import_module(f"taeda_tensor_core.{home}").restored(*found)
        except (ValueError, TypeError) as error:
            return fail(f"the file makes a tensor of kind {home} that cannot be: {error}")

    return call


# Pickles that are written under PyTorch's name say its names.
rebuild_tensor.__module__, rebuild_tensor.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
rebuild_typed.__module__, rebuild_typed.__qualname__ = "torch._utils", "_rebuild_tensor_v3"
rebuild_meta.__module__, rebuild_meta.__qualname__ = "torch._utils", "_rebuild_meta_tensor_no_storage"
rebuild_parameter.__module__, rebuild_parameter.__qualname__ = "torch._utils", "_rebuild_parameter"

# By their names in the files. These make tensors and small values of checked arguments.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": rebuild_typed,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta,
    "torch._utils._rebuild_wrapper_subclass": _of_kinds("rebuild_wrapper"),
    "torch._utils._rebuild_sparse_tensor": _of_kinds("rebuild_sparse"),
    "torch._utils._rebuild_qtensor": rebuild_quantized,
    "torch._utils._rebuild_nested_tensor": _of_kinds("rebuild_nested"),
    "torch.nested._internal.nested_tensor._rebuild_njt": _of_kinds("rebuild_njt"),
    "torch.serialization._get_layout": _of_kinds("layout"),
    "taeda_tensor_core._info._named_format": _of_kinds("memory_format"),
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter,
    "taeda_tensor_core.packed.restored": _own_kind("packed"),
    "taeda_tensor_core.opaque.restored": _own_kind("opaque"),
    "taeda_tensor_core.nested._tensor.restored": _of_kinds("rebuild_jagged"),
    "torch.Size": size,
    "torch.device": device,
}


def placer(map_location: Any) -> Callable[[Any, str], Any]:
    """How storages get to their devices.

    Args:
        map_location: as in `serialization.load`.
    """
    if map_location is None:
        return _home
    if callable(map_location) and not isinstance(map_location, tc.device):  # devices are decorators too

        def by_function(memory: Any, location: str) -> Any:
            try:
                moved = map_location(memory, location)
                if moved is not None and not isinstance(moved, tc.Tensor):
                    raise TypeError(
                        f"load: argument 'map_location' must return a tensor or None, found {moved!r}"
                    )
            except Exception as error:
                raise CallersError(error) from error
            return _home(memory, location) if moved is None else moved

        return by_function
    if isinstance(map_location, dict):
        return lambda memory, location: _home(memory, str(map_location.get(location, location)))
    target = tc.device(map_location)

    def to_target(memory: Any, location: str) -> Any:
        try:
            return memory.to(target)
        except RuntimeError as error:
            raise CallersError(error) from error

    return to_target


def _home(memory: Any, location: str) -> Any:
    if location == "cpu":
        return memory
    try:
        return memory.to(tc.device(location))
    except RuntimeError as error:
        if not (isinstance(error, UnusableDeviceError) or str(error).startswith("device:")):
            raise
        raise CheckpointError(
            f"load: the file holds tensors of device {shown(location)}, which is not here; map_location='cpu' loads "
            "them to main memory"
        ) from (error if isinstance(error, UnusableDeviceError) else None)
