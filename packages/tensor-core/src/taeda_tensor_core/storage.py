"""Memory of tensors as an object: facts about it, and its bytes or elements as a sequence."""

from __future__ import annotations

import copy
import os
import sys
from numbers import Integral
from typing import TYPE_CHECKING, Any

from taeda_tensor_core import _C, _copies, _older_names
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._info import library_name
from taeda_tensor_core._mapped import mapped_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TypedStorage", "UntypedStorage"]


class _StorageBase:
    """What both kinds have in common: a tensor over all elements."""

    is_sparse = False

    def _elements(self) -> Tensor:
        raise NotImplementedError

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        return self._elements().tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice) and (isinstance(self, TypedStorage) or index.step not in (None, 1)):
            raise RuntimeError(
                "storage[slice]: only an UntypedStorage has slices, of step 1; use untyped(), or a tensor's elements"
            )
        found = self._elements()[index]
        if isinstance(index, int):
            return found.item()
        if found.numel() == 0:
            found = _C.empty((0,), dtype=found.dtype, device=found.device)
        elif found.device.type == "cpu":
            found = _C.frombuffer(found, dtype=_C.uint8)  # over the same bytes, and ends where the slice does
        return type(self)._over(found)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._elements()[index] = value

    @classmethod
    def _over(cls, elements: Tensor) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return self.size()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def nbytes(self) -> int:
        """Number of bytes."""
        raise NotImplementedError

    def size(self) -> int:
        """Number of elements."""
        return self._elements().numel()

    def fill_(self, value: Any) -> Any:
        """Set all elements."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Any:
        """Take the elements of another storage of this size."""
        self._elements().copy_(source._elements(), non_blocking=bool(non_blocking))
        return self

    def clone(self) -> Any:
        """The same elements in new memory."""
        return type(self)._over(self._elements().clone())

    def cpu(self) -> Any:
        """The same elements in the host's memory; the storage itself when they are."""
        return self if self.device.type == "cpu" else type(self)._over(self._elements().cpu())

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """The same elements on a device; the storage itself when they are."""
        moved = self._elements().to(device, non_blocking=non_blocking)
        return self if moved.data_ptr() == self.data_ptr() else type(self)._over(moved)

    def _to_kind(self, kind: str, device: Any, non_blocking: bool) -> Any:
        where = kind if device is None else f"{kind}:{device}" if isinstance(device, int) else device
        return self.to(device=where, non_blocking=bool(non_blocking))

    def pin_memory(self, device: Any = None) -> Any:
        """The same elements in memory from which a device copies without blocking."""
        return type(self)._over(self._elements().pin_memory(device))

    def is_pinned(self, device: Any = None) -> bool:
        """Whether they are in such memory."""
        return self._elements().is_pinned()

    def is_shared(self) -> bool:
        """Whether other processes can map the memory."""
        return self._elements().is_shared()

    @property
    def device(self) -> Any:
        """Where the memory is."""
        raise NotImplementedError

    def data_ptr(self) -> int:
        """Address of the first byte."""
        raise NotImplementedError

    def get_device(self) -> int:
        """Index of the device; -1 for the cpu."""
        return self._elements().get_device()

    def resizable(self) -> bool:
        """Whether `resize_` may be called."""
        return not self.is_shared()

    def __copy__(self) -> Any:
        return self.clone()


def _moves(kind: str) -> Any:
    def to_kind(self: _StorageBase, device: Any = None, non_blocking: bool = False) -> Any:
        return self._to_kind(kind, device, non_blocking)

    to_kind.__name__ = kind
    to_kind.__doc__ = (
        f"The same elements on a device of the kind {kind!r}, the current one unless another is named."
    )
    return to_kind


def _asks(kind: str) -> property:
    return property(
        lambda self: self.device.type == kind,
        doc=f"Whether the memory is that of a device of the kind {kind!r}.",
    )


for _kind in (*_C._reserved_devices(), "hpu"):
    setattr(_StorageBase, _kind, _moves(_kind))
    setattr(_StorageBase, f"is_{_kind}", _asks(_kind))


class UntypedStorage(_StorageBase):
    """The memory of a tensor as bytes. The tensor may show other memory later.

    Args:
        *args: Number of bytes, or a sequence of them; nothing for no bytes.
        device: Where new memory is.

    Example:
        >>> taeda.ones(2).untyped_storage().nbytes()
        8
    """

    #: Functions that make tensors of it read elements of the dtype they are given, not bytes that they convert.
    _is_untyped_memory = True

    def __init__(self, *args: Any, device: Any = None) -> None:
        if len(args) > 1:
            raise TypeError(f"UntypedStorage: expected one argument, a size or bytes, found {len(args)}")
        given = args[0] if args else 0
        if isinstance(given, Tensor):
            self._tensor = given.detach()
        elif isinstance(given, Integral):
            self._tensor = _C.empty((int(given),), dtype=_C.uint8, device=device or "cpu")
        else:
            self._tensor = _C.tensor(list(given), dtype=_C.uint8, device=device or "cpu")

    @classmethod
    def _over(cls, elements: Tensor) -> UntypedStorage:
        return cls(elements)

    is_sparse_csr = False
    _filename: str | None = None

    @property
    def filename(self) -> str | None:
        """Name of the file that `from_file` mapped to make this object, and that its writes go to; else None."""
        return self._filename

    def new(self) -> UntypedStorage:
        """A storage of no bytes on the same device."""
        return UntypedStorage(device=self.device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Name of the class without `dtype`, which else is that name: bytes have no other.

        Raises:
            TypeError: `dtype` names another class.
        """
        name = f"{library_name()}.storage.UntypedStorage"
        if dtype is None:
            return name
        if dtype != name and dtype is not UntypedStorage:
            raise TypeError(f"UntypedStorage.type: argument 'dtype' is {dtype!r}, expected {name!r}")
        return self

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, mapped into memory.

        Args:
            filename: Its name.
            shared: Writes go to the file, which is made or grows to `nbytes` where it is shorter; else they stay in
                memory.
            nbytes: How many from its begin; all of them by default.

        Raises:
            OSError: The file cannot be opened, or the disk has no room for it.
            RuntimeError: The file is shorter.
        """
        found = mapped_bytes("from_file", filename, shared, nbytes or None)
        made = cls() if found is None else cls(_C.frombuffer(found, dtype=_C.uint8))
        made._filename = os.fspath(filename) if shared else None
        return made

    def byteswap(self, dtype: Any) -> None:
        """Turn round the bytes of every element, in place, as if the storage held elements of a dtype.

        Raises:
            RuntimeError: It holds no whole number of them.

        Example:
            >>> x = taeda.tensor([1, 256], dtype=taeda.int16)
            >>> x.untyped_storage().byteswap(taeda.int16)
            >>> x
            tensor([256,   1], dtype=taeda.int16)
        """
        item = dtype.itemsize // (2 if dtype.is_complex else 1)
        if self.nbytes() % item:
            raise RuntimeError(
                f"byteswap: argument 'dtype' is {dtype}, the {self.nbytes()} bytes are no whole number of its elements"
            )
        rows = self._elements().view(-1, item)
        rows.copy_(rows.flip(1))

    @classmethod
    def from_buffer(
        cls,
        buffer: Any,
        byte_order: str | None = None,
        count: int = -1,
        offset: int = 0,
        *,
        dtype: Any = None,
    ) -> UntypedStorage:
        """A copy of the bytes of a buffer.

        Args:
            buffer: `bytes`, `bytearray`, `memoryview` and their like.
            byte_order: "native", "little" or "big"; of dtypes of several bytes it must be given.
            count: How many elements; all by default.
            offset: Bytes in front of the first.
            dtype: Of the elements; uint8 by default.

        Raises:
            ValueError: A byte order is missing, or the buffer is no whole number of elements or too short.

        Example:
            >>> taeda.UntypedStorage.from_buffer(b"ab").tolist()
            [97, 98]
        """
        dtype = _C.uint8 if dtype is None else dtype
        item = dtype.itemsize
        held = memoryview(buffer).cast("B")
        if byte_order not in ("native", "little", "big") and (item > 1 or byte_order is not None):
            raise ValueError(
                f"from_buffer: argument 'byte_order' is {byte_order!r}, expected 'native', 'little' or 'big'"
            )
        if not 0 <= offset <= len(held) or (count < 0 and (len(held) - offset) % item):
            raise ValueError(
                f"from_buffer: {len(held)} bytes after offset {offset} are no whole number of elements of {dtype}"
            )
        wanted = (len(held) - offset) // item if count < 0 else count
        if wanted * item > len(held) - offset:
            raise ValueError(
                f"from_buffer: argument 'count' is {count}, expected at most {(len(held) - offset) // item}"
            )
        given = bytearray(held[offset : offset + wanted * item])
        if item > 1 and byte_order not in ("native", sys.byteorder):
            part = item // 2 if dtype.is_complex else item
            for at in range(part):  # a byte of all parts at once
                given[at::part] = held[offset + part - 1 - at : offset + wanted * item : part]
        return cls(_C.frombuffer(given, dtype=_C.uint8).clone()) if given else cls()

    @property
    def __array_interface__(self) -> Any:
        """For functions that make tensors of arrays: the bytes themselves."""
        return self._elements().numpy().__array_interface__

    def _elements(self) -> Tensor:
        found = _copies.storage_bytes(self._tensor)
        if found is not None:
            return found
        if self.nbytes() == 0:
            return _C.empty((0,), dtype=_C.uint8, device=self._tensor.device)
        raise NotImplementedError(
            f"UntypedStorage: the bytes of memory of a tensor on device '{self.device}' of dtype {self._tensor.dtype} "
            "cannot be shown; use the tensor's elements"
        )

    def data_ptr(self) -> int:
        """Address of the first byte."""
        self._tensor.data_ptr()  # tells the storage that an address is known
        return self._tensor._storage_facts()[0]

    @property
    def _cdata(self) -> int:
        """What tells storages apart while they are there; where there is no memory, too."""
        return self._tensor._storage_facts()[5]

    def nbytes(self) -> int:
        """Number of bytes."""
        return self._tensor._storage_facts()[1]

    size = __len__ = nbytes

    def element_size(self) -> int:
        """1."""
        return 1

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._tensor.device

    def resize_(self, size: int) -> UntypedStorage:
        """Another number of bytes. What is beyond it goes back to the system: it reads as zeros or as it was, also when
        it is shown again.

        Args:
            size: In bytes.

        Raises:
            RuntimeError: More bytes than there ever were while tensors show them (resize these, or use
                `Tensor.set_`), memory of another library, or memory that a NumPy array shows.

        Example:
            >>> weight = taeda.ones(2, 3)
            >>> weight.untyped_storage().resize_(0).nbytes()
            0
        """
        if self._tensor._resize_storage(size):
            return self
        if self._tensor._storage_facts()[2] > 1:
            raise RuntimeError(
                f"UntypedStorage.resize_: memory of {self.nbytes()} bytes that tensors show cannot grow to size={size}"
                "; use Tensor.resize_ or Tensor.set_"
            )
        grown = _C.empty((size,), dtype=_C.uint8, device=self._tensor.device)
        grown[: self.nbytes()] = self._elements()
        self._tensor = grown
        return self

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def share_memory_(self) -> UntypedStorage:
        """Move the tensor's memory to where other processes can map it."""
        self._tensor.share_memory_()
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        """New memory of `size` bytes, on the cpu where other processes can map it: collating functions fill it."""
        made = cls(size, device=device)
        return made.share_memory_() if made.device.type == "cpu" and size else made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)

    def __repr__(self) -> str:
        items = "..." if self.device.type == "meta" else "\n ".join(map(str, self.tolist()))
        home = f"{library_name()}.storage.UntypedStorage"
        return f" {items}\n[{home}(device={self.device}) of size {self.nbytes()}]"


class _TypedMeta(type):
    """`isinstance(storage, FloatStorage)` asks for the dtype."""

    dtype: Any

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is TypedStorage:
            return type.__instancecheck__(cls, instance)
        return issubclass(type(instance), TypedStorage) and instance.dtype is cls.dtype  # type: ignore[attr-defined]


class TypedStorage(_StorageBase, metaclass=_TypedMeta):
    """The memory of a tensor as elements of its dtype.

    Args:
        *args: Number of elements, or a sequence of them; nothing for none.
        wrap_storage: The memory that it shows, instead of new memory.
        dtype: Of the elements; the default dtype when nothing says it.
        device: Where new memory is.

    Example:
        >>> taeda.ones(2).storage().tolist()
        [1.0, 1.0]
    """

    dtype: Any = None

    def __init__(
        self, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: Any = None, device: Any = None,
        _internal: bool = False,
    ) -> None:  # fmt: skip
        own = type(self).__dict__.get("dtype")
        self.dtype = dtype or own or _C.get_default_dtype()
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    "TypedStorage: argument 'wrap_storage' cannot be given beside a size or elements"
                )
            if wrap_storage.nbytes() % self.dtype.itemsize:
                raise RuntimeError(
                    f"TypedStorage: {wrap_storage.nbytes()} bytes are no whole number of elements of {self.dtype}"
                )
            self._untyped_storage = wrap_storage
            return
        if len(args) > 1:
            raise TypeError(f"TypedStorage: expected one argument, a size or elements, found {len(args)}")
        given = args[0] if args else 0
        if isinstance(given, Integral):
            made = _C.empty((given,), dtype=self.dtype, device=device or "cpu")
        else:
            made = _C.tensor(list(given), dtype=self.dtype, device=device or "cpu")
        self._untyped_storage = UntypedStorage(made)

    @classmethod
    def from_buffer(cls, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> TypedStorage:
        """As `UntypedStorage.from_buffer`, of the class's own dtype: `FloatStorage.from_buffer(data, "native")`."""
        own = cls.__dict__.get("dtype") or dtype or _C.get_default_dtype()
        memory = UntypedStorage.from_buffer(*args, dtype=own, **kwargs)
        return TypedStorage(wrap_storage=memory, dtype=own)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """As `UntypedStorage.from_file`, of `size` elements of the class's own dtype."""
        own = cls.__dict__.get("dtype") or _C.get_default_dtype()
        memory = UntypedStorage.from_file(filename, shared, size * own.itemsize)
        return TypedStorage(wrap_storage=memory, dtype=own)

    @classmethod
    def _over(cls, elements: Tensor) -> TypedStorage:
        return TypedStorage(wrap_storage=UntypedStorage(elements), dtype=elements.dtype)

    def _elements(self) -> Tensor:
        return self._untyped_storage._elements().view(self.dtype)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped_storage

    def size(self) -> int:
        """Number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def nbytes(self) -> int:
        """Number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return self._untyped_storage.data_ptr()

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def filename(self) -> str | None:
        """As `UntypedStorage.filename`."""
        return self._untyped_storage.filename

    def _get_legacy_storage_class(self) -> Any:
        """The older class of this dtype, such as FloatStorage; None where there is none."""
        return globals().get(_older_names.STORAGES.get(self.dtype.name, ""))

    def _new_wrapped_storage(self, untyped_storage: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped_storage, dtype=self.dtype)

    def _deepcopy(self, memo: dict[int, Any]) -> TypedStorage:
        return copy.deepcopy(self, memo)

    def _resize_(self, size: int) -> None:
        self.resize_(size)

    def pickle_storage_type(self) -> str:
        """Name of the older class."""
        return _older_names.STORAGES[self.dtype.name]

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Name of the older class without `dtype`, else the elements in that dtype."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        wanted = getattr(dtype, "dtype", dtype)
        return TypedStorage._over(self._elements().to(wanted))

    def resize_(self, size: int) -> TypedStorage:
        """Another number of elements, as `UntypedStorage.resize_`."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def share_memory_(self) -> TypedStorage:
        """Move the memory to where other processes can map it."""
        self._untyped_storage.share_memory_()
        return self

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        """As `UntypedStorage._new_shared`, of `size` elements of this one's dtype."""
        memory = UntypedStorage._new_shared(size * self.dtype.itemsize, device=device or "cpu")
        return TypedStorage(wrap_storage=memory, dtype=self.dtype)

    # What PyTorch calls the same where it does not warn of typed storages.
    _size, _nbytes, _element_size, _data_ptr = size, nbytes, element_size, data_ptr
    _from_buffer, _pickle_storage_type, _share_memory_ = from_buffer, pickle_storage_type, share_memory_
    _getitem, _setitem, _is_shared = (
        _StorageBase.__getitem__,
        _StorageBase.__setitem__,
        _StorageBase.is_shared,
    )

    @property
    def _dtype(self) -> Any:
        return self.dtype

    def __eq__(self, other: object) -> bool:
        return (
            issubclass(type(other), TypedStorage)
            and self._cdata == other._cdata
            and self.dtype is other.dtype
        )  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self._cdata, self.dtype.name))

    def __repr__(self) -> str:
        items = "\n".join(f" {item}" for item in self.tolist())
        home = f"{library_name()}.storage.TypedStorage"
        return f"{items}\n[{home}(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


def _converter(name: str, dtype: str) -> Any:
    def convert(self: _StorageBase) -> TypedStorage:
        return TypedStorage._over(self._elements().to(getattr(_C, dtype)))

    convert.__name__ = name
    convert.__doc__ = f"The elements as {dtype}, in new memory where they are not."
    return convert


_CONVERSIONS = {
    **{name: name for name in ("double", "float", "half", "long", "int", "short", "bfloat16", "bool")},
    **{name: name for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")},
    "char": "int8", "byte": "uint8", "complex_float": "complex64", "complex_double": "complex128",
}  # fmt: skip
for _name, _dtype in _CONVERSIONS.items():
    for _kind in (TypedStorage, UntypedStorage):  # bytes are numbers from 0 to 255
        setattr(_kind, _name, _converter(_name, _dtype))


def _new_shared(cls: type[TypedStorage], size: int) -> TypedStorage:
    """New memory of `size` elements of the class's dtype that other processes can map."""
    return TypedStorage(dtype=cls.dtype)._new_shared(size)


def _typed_class(dtype: str, name: str) -> type:
    members = {
        "dtype": getattr(_C, dtype),
        "_new_shared": classmethod(_new_shared),
        "__doc__": f"The elements of memory as {dtype}.",
        "__module__": __name__,
    }
    return _TypedMeta(name, (TypedStorage,), members)


def _dtype_to_storage_type_map() -> dict[Any, str]:
    return {getattr(_C, dtype): name for dtype, name in _older_names.STORAGES.items()}


def _storage_type_to_dtype_map() -> dict[str, Any]:
    return {name: dtype for dtype, name in _dtype_to_storage_type_map().items()}


globals().update({name: _typed_class(dtype, name) for dtype, name in _older_names.STORAGES.items()})


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that the tensor shows, as bytes."""
    return UntypedStorage(self)


def typed_storage(self: Tensor) -> TypedStorage:
    """The memory that the tensor shows, as elements of its dtype."""
    return TypedStorage(wrap_storage=UntypedStorage(self), dtype=self.dtype)


def is_storage(obj: object, /) -> bool:
    """Whether `obj` is a storage."""
    return issubclass(type(obj), _StorageBase)


def shown(storage: Any, dtype: Any, offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over a part of a storage, of its whole length when no size is given.

    Raises:
        RuntimeError: The storage has elements of another dtype.
    """
    found = getattr(storage, "dtype", dtype)
    if found is not dtype:
        raise RuntimeError(f"found a storage of {found}, expected one of {dtype} or an untyped one")
    elements = storage.untyped()._elements()
    count = elements.numel() // dtype.itemsize - offset
    size = (count,) if size is None else (size,) if isinstance(size, int) else tuple(size)
    if stride is None:
        stride = _C.empty(size, device="meta").stride()
    return _copies.shown_over(
        elements[: elements.numel() // dtype.itemsize * dtype.itemsize], dtype, size, tuple(stride), offset
    )


def _load_from_bytes(b: bytes) -> Any:
    """The storage in bytes that PyTorch wrote: what pickles of its tensors call."""
    import io

    from taeda_tensor_core.serialization import load

    return load(io.BytesIO(b))


_load_from_bytes.__module__ = (
    "torch.storage"  # where pickles that are written under PyTorch's name look for it
)


#: The class that older programs name.
Storage = UntypedStorage
StorageBase = _StorageBase
