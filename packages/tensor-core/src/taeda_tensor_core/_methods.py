"""Methods of Tensor that are written in Python: printing, conversions, NumPy's view of it."""

from __future__ import annotations

from taeda_tensor_core import _C, _copies, _functions, _overridable, _printing, _unique
from taeda_tensor_core._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LEGACY = {
    "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor", "bfloat16": "BFloat16Tensor",
    "uint8": "ByteTensor", "int8": "CharTensor", "int16": "ShortTensor", "int32": "IntTensor", "int64": "LongTensor",
    "bool": "BoolTensor", "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
}  # fmt: skip


# --- NumPy ---


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = self.numpy()
    if dtype is None or array.dtype == dtype:
        return array.copy() if copy else array
    if copy is False:
        raise ValueError(f"__array__: dtype {dtype} needs a copy, but copy=False was asked for")
    return array.astype(dtype)


# --- text ---


def __repr__(self: Tensor, *, tensor_contents: str | None = None) -> str:
    return _printing.tensor_text(self, tensor_contents)


def __format__(self: Tensor, spec: str) -> str:
    if self.dim() == 0 and self.device.type != "meta":
        return format(self.item(), spec)
    if spec:
        raise TypeError(
            f"__format__: a format such as {spec!r} needs a tensor of no dimension, found shape {tuple(self.shape)}"
        )
    return __repr__(self)


# --- the rest ---


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Name of the tensor's type without `dtype`, else the tensor in that dtype."""
    if dtype is None:
        return f"taeda.{_LEGACY.get(self.dtype.name, self.dtype.name)}"
    if isinstance(dtype, str):
        names = {text: name for name, text in _LEGACY.items()}
        name = names.get(dtype.rpartition(".")[2])
        if name is None:
            raise ValueError(
                f"type: unknown type {dtype!r}; expected a dtype or one of {', '.join(sorted(names))}"
            )
        dtype = getattr(_C, name)
    return self.to(dtype)


type_.__name__ = "type"


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype and on the device of `other`."""
    return self.to(other)


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """New tensor from `data` with this tensor's dtype and device unless given."""
    return _C.tensor(
        data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )


def resize_(self: Tensor, *size: Any) -> Tensor:
    """Give the tensor another shape in place, row-major from its first element.

    Elements are kept, in the order of the memory, as far as they fit; new ones are unspecified. Views see the same
    memory as before: where the tensor has to grow beyond it, it moves to memory of its own.

    Raises:
        RuntimeError: It requires grad, or it has to grow while a NumPy array, a buffer or a DLPack capsule holds its
            memory, or its memory belongs to another library.

    Example:
        >>> taeda.arange(6).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    return self._resize_to(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)


def resize_as_(self: Tensor, other: Tensor) -> Tensor:
    """resize_ to the shape of `other`."""
    return resize_(self, other.shape)


def __reversed__(self: Tensor) -> Tensor:
    return self if self.dim() == 0 else _C.flip(self, (0,))


class UntypedStorage:
    """The memory of a tensor: facts about it. The tensor may show other memory later."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor.detach()

    def data_ptr(self) -> int:
        """Address of the first byte."""
        self._tensor.data_ptr()  # tells the storage that an address is known
        return self._tensor._storage_facts()[0]

    def nbytes(self) -> int:
        """Number of bytes."""
        return self._tensor._storage_facts()[1]

    size = __len__ = nbytes

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._tensor.device

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UntypedStorage)
            and self._tensor._storage_facts()[0] == other._tensor._storage_facts()[0]
        )

    def __hash__(self) -> int:
        return hash(self._tensor._storage_facts()[0])


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that the tensor shows."""
    return UntypedStorage(self)


def storage(self: Tensor) -> UntypedStorage:
    """The same as untyped_storage."""
    return UntypedStorage(self)


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on another device, as the array API standard names it."""
    return self.to(device)


def _mover(name: str) -> Callable[..., Tensor]:
    """The method that brings a tensor to a device of a reserved name."""

    def move(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
        target = name if device is None else f"{name}:{device}" if isinstance(device, int) else device
        return self.to(target, non_blocking=non_blocking)

    move.__name__ = name
    move.__doc__ = (
        f"The tensor on a device of the kind {name!r}, which a plug-in offers; an index picks one of several."
    )
    return move


def _shared(name: str, placeholder: Any) -> Any:
    """The method that the provider of slot ``multiprocessing`` puts in the place of one here."""
    from taeda_registry import RegistryError, resolve

    try:
        provider = resolve("multiprocessing")
    except RegistryError as error:
        raise RuntimeError(f"Tensor.{name} needs a package that cannot be had: {error}") from error
    method = getattr(Tensor, name)
    if method is placeholder:
        raise RuntimeError(
            f"Tensor.{name}: the provider of slot 'multiprocessing' ({provider.__name__}) shares no tensors"
        )
    return method


def share_memory_(self: Tensor) -> Tensor:
    """Move the tensor to memory that other processes can map (taeda-multiprocessing)."""
    return _shared("share_memory_", share_memory_)(self)


def is_shared(self: Tensor) -> bool:
    """Whether the tensor's memory can be mapped by other processes (taeda-multiprocessing)."""
    return _shared("is_shared", is_shared)(self)


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor's elements where `condition` holds, those of `other` elsewhere."""
    return _C.where(condition, self, other)


def apply_(self: Tensor, function: Any) -> Tensor:
    """Replace every element by what a Python function makes of it (slow, cpu only)."""
    return self.copy_(
        _C.tensor([function(v) for v in self.reshape(-1).tolist()], dtype=self.dtype).reshape(self.shape)
    )


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in host memory from which `device` copies without blocking.

    Args:
        device: Device type that pins the memory; None gives the tensor itself, as there is no one accelerator.

    Raises:
        NotImplementedError: The device has no pinned memory.

    Example:
        >>> batch.pin_memory("mydev").to("mydev", non_blocking=True)
    """
    return self if device is None else _C._pinned_copy(self, device)


def record_stream(self: Tensor, stream: Any) -> None:
    """Say that work on `stream` uses the tensor too: its memory is not given to others before that is done."""
    from taeda_tensor_core.streams import Stream, checked

    _C._stream_uses(self, checked(stream, Stream, "record_stream", "stream")._handle)


def _make_wrapper_subclass(cls: type, *args: Any, **kwargs: Any) -> Tensor:
    """An instance of a subclass that has a shape and a dtype but no memory; see `python_dispatch`."""
    from taeda_tensor_core.python_dispatch import make_wrapper_subclass

    return make_wrapper_subclass(cls, *args, **kwargs)


METHODS = [
    __array__, _copies.__reduce_ex__, _copies.__deepcopy__, _copies.__copy__,
    __repr__, __format__, type_as, new_tensor, resize_,
    resize_as_, __reversed__, untyped_storage, to_device,
    where, apply_, pin_memory, record_stream, share_memory_, is_shared,
]  # fmt: skip


def install() -> None:
    """Put the methods on the Tensor type."""
    for method in METHODS:
        setattr(Tensor, method.__name__, method)
    for function in (
        _unique.unique,
        _unique.unique_consecutive,
        _functions.is_nonzero,
        _functions.nonzero,
        _functions.resolve_conj,
        _functions.resolve_neg,
    ):
        setattr(Tensor, function.__name__, function)
    for name in _C._reserved_devices():
        setattr(Tensor, name, _mover(name))
    Tensor.is_same_size = _functions.is_same_size
    Tensor.storage = storage
    Tensor.__rdiv__ = Tensor.__rtruediv__
    Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)
    Tensor.type = type_
    Tensor.__array_priority__ = 1000  # NumPy then leaves operators to the tensor
    Tensor.__module__ = "taeda_tensor_core"
    # Reduction reads the object's own class and state, which no other class can answer for.
    _overridable.overridable(
        function for function in vars(Tensor).values() if function is not _copies.__reduce_ex__
    )
