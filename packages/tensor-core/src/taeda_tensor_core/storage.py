"""Memory of tensors as an object: facts about it, and its bytes or elements as a sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda_tensor_core import _C, _copies
from taeda_tensor_core._C import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TypedStorage", "UntypedStorage"]

# Names of the older classes, by dtype.
STORAGE_NAMES = {
    "float32": "FloatStorage", "float64": "DoubleStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage",
    "uint8": "ByteStorage", "int8": "CharStorage", "int16": "ShortStorage", "int32": "IntStorage",
    "int64": "LongStorage",
    "bool": "BoolStorage", "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
}  # fmt: skip


class _StorageBase:
    """What both kinds have in common: a tensor over all elements."""

    def _elements(self) -> Tensor:
        raise NotImplementedError

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        return self._elements().tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: int | slice) -> Any:
        found = self._elements()[index]
        if isinstance(index, int):
            return found.item()
        if found.numel() == 0:
            found = _C.empty((0,), dtype=found.dtype, device=found.device)
        elif found.dtype is _C.uint8 and found.device.type == "cpu":
            found = _C.frombuffer(found, dtype=_C.uint8)  # over the same bytes, and ends where the slice does
        return type(self)._over(found)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._elements()[index] = value

    @classmethod
    def _over(cls, elements: Tensor) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return self.size()

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

    @property
    def is_sparse(self) -> bool:
        """False."""
        return False


class UntypedStorage(_StorageBase):
    """The memory of a tensor as bytes. The tensor may show other memory later.

    Args:
        *args: Number of bytes, or a sequence of them; nothing for no bytes.
        device: Where new memory is.

    Example:
        >>> taeda.ones(2).untyped_storage().nbytes()
        8
    """

    def __init__(self, *args: Any, device: Any = None) -> None:
        if len(args) > 1:
            raise TypeError(f"UntypedStorage: expected one argument, a size or bytes, found {len(args)}")
        given = args[0] if args else 0
        if isinstance(given, Tensor):
            self._tensor = given.detach()
        elif isinstance(given, int):
            self._tensor = _C.empty((given,), dtype=_C.uint8, device=device or "cpu")
        else:
            self._tensor = _C.tensor(list(given), dtype=_C.uint8, device=device or "cpu")

    @classmethod
    def _over(cls, elements: Tensor) -> UntypedStorage:
        return cls(elements)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, mapped into memory.

        Args:
            filename: Its name.
            shared: Writes go to the file, which grows to `nbytes` where it is shorter; else they stay in memory.
            nbytes: How many from its begin; all of them by default.

        Raises:
            RuntimeError: The file is shorter.
        """
        import mmap

        with open(filename, "r+b" if shared else "rb") as file:
            held = file.seek(0, 2)
            if shared and held < nbytes:
                file.truncate(nbytes)
            elif held < nbytes:
                raise RuntimeError(f"from_file: {str(filename)!r} has {held} bytes, expected {nbytes}")
            if not (nbytes or held):
                return cls()
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            return cls(_C.frombuffer(mmap.mmap(file.fileno(), nbytes, access=access), dtype=_C.uint8))

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0, *, dtype: Any = None
    ) -> UntypedStorage:
        """A copy of the bytes of an object that shows its memory, such as `bytes`.

        Args:
            buffer: The object.
            byte_order: Of its elements: 'native', 'little' or 'big'.
            count: Number of elements; all by default.
            offset: Bytes before the first one.
            dtype: Of the elements; uint8 by default.

        Raises:
            ValueError: The byte order is another, or the buffer ends before the last element.
        """
        return cls(_from_buffer(buffer, byte_order, count, offset, dtype or _C.uint8))

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
        raise RuntimeError(
            f"UntypedStorage: the bytes of memory of a tensor on device '{self.device}' of dtype {self._tensor.dtype} "
            "cannot be shown; use the tensor's elements"
        )

    def data_ptr(self) -> int:
        """Address of the first byte."""
        self._tensor.data_ptr()  # tells the storage that an address is known
        return self._tensor._storage_facts()[0]

    @property
    def _cdata(self) -> int:
        """What tells storages apart."""
        return self._tensor._storage_facts()[0]

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
        """Only to the size that it has.

        Raises:
            RuntimeError: Another size: memory keeps its size; resize tensors.
        """
        if size != self.nbytes():
            raise RuntimeError(
                f"UntypedStorage.resize_: memory keeps its size of {self.nbytes()} bytes, found size={size}; use "
                "Tensor.resize_ or Tensor.set_"
            )
        return self

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def share_memory_(self) -> UntypedStorage:
        """Move the tensor's memory to where other processes can map it."""
        self._tensor.share_memory_()
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)

    def __repr__(self) -> str:
        return f"taeda.UntypedStorage(device={str(self.device)!r}, nbytes={self.nbytes()})"


def _from_buffer(buffer: Any, byte_order: str, count: int, offset: int, dtype: Any) -> Tensor:
    """A copy of elements, in the machine's order of bytes."""
    import sys

    if byte_order not in ("native", "little", "big"):
        raise ValueError(
            f"from_buffer: argument 'byte_order' must be 'native', 'little' or 'big', found {byte_order!r}"
        )
    size, width = len(memoryview(buffer).cast("B")) - offset, dtype.itemsize
    held = size if count < 0 else count * width
    if offset < 0 or size < 0 or held > size:
        raise ValueError(f"from_buffer: {held} bytes from {offset} on, but the buffer has {size + offset}")
    if held % width:
        raise ValueError(f"from_buffer: {held} bytes are no whole number of elements of {width} bytes")
    memory = bytearray(memoryview(buffer).cast("B")[offset : offset + held])
    elements = _C.frombuffer(memory, dtype=_C.uint8) if held else _C.empty((0,), dtype=_C.uint8)
    if byte_order not in ("native", sys.byteorder) and width > 1:
        elements = elements.view(-1, width).flip(1).reshape(-1)
    return elements.clone().view(dtype)


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
            self._untyped = wrap_storage
            return
        if len(args) > 1:
            raise TypeError(f"TypedStorage: expected one argument, a size or elements, found {len(args)}")
        given = args[0] if args else 0
        if isinstance(given, int):
            made = _C.empty((given,), dtype=self.dtype, device=device or "cpu")
        else:
            made = _C.tensor(list(given), dtype=self.dtype, device=device or "cpu")
        self._untyped = UntypedStorage(made)

    @classmethod
    def _over(cls, elements: Tensor) -> TypedStorage:
        return TypedStorage(wrap_storage=UntypedStorage(elements), dtype=elements.dtype)

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0, *, dtype: Any = None
    ) -> TypedStorage:
        """A copy of elements from an object that shows its memory; see :meth:`UntypedStorage.from_buffer`.

        Args:
            buffer: The object.
            byte_order: Of its elements: 'native', 'little' or 'big'.
            count: Number of elements; all by default.
            offset: Bytes before the first one.
            dtype: Of the elements, unless the class has one.

        Example:
            >>> taeda.ByteStorage.from_buffer(b"abc").tolist()
            [97, 98, 99]
        """
        own = cls.__dict__.get("dtype") or dtype or _C.get_default_dtype()
        return TypedStorage._over(_from_buffer(buffer, byte_order, count, offset, own))

    def _elements(self) -> Tensor:
        return self._untyped._elements().view(self.dtype)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped

    _untyped_storage = property(untyped)

    def size(self) -> int:
        """Number of elements."""
        return self._untyped.nbytes() // self.dtype.itemsize

    _size = size

    def nbytes(self) -> int:
        """Number of bytes."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return self._untyped.data_ptr()

    @property
    def _cdata(self) -> int:
        return self._untyped._cdata

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._untyped.device

    def pickle_storage_type(self) -> str:
        """Name of the older class."""
        return STORAGE_NAMES[self.dtype.name]

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Name of the older class without `dtype`, else the elements in that dtype."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        wanted = getattr(dtype, "dtype", dtype)
        return TypedStorage._over(self._elements().to(wanted))

    def resize_(self, size: int) -> TypedStorage:
        """Only to the size that it has."""
        self._untyped.resize_(size * self.dtype.itemsize)
        return self

    def share_memory_(self) -> TypedStorage:
        """Move the memory to where other processes can map it."""
        self._untyped.share_memory_()
        return self

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
        return f"{items}\n[taeda.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


def _converter(name: str, dtype: str) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return TypedStorage._over(self._elements().to(getattr(_C, dtype)))

    convert.__name__ = name
    convert.__doc__ = f"The elements as {dtype}, in new memory where they are not."
    return convert


_CONVERSIONS = {
    **{name: name for name in ("double", "float", "half", "long", "int", "short", "bfloat16", "bool")},
    "char": "int8", "byte": "uint8", "complex_float": "complex64", "complex_double": "complex128",
}  # fmt: skip
for _name, _dtype in _CONVERSIONS.items():
    setattr(TypedStorage, _name, _converter(_name, _dtype))


def _typed_class(dtype: str, name: str) -> type:
    text = f"The elements of memory as {dtype}."
    return _TypedMeta(
        name, (TypedStorage,), {"dtype": getattr(_C, dtype), "__doc__": text, "__module__": __name__}
    )


globals().update({name: _typed_class(dtype, name) for dtype, name in STORAGE_NAMES.items()})


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
    """A tensor over a part of a storage, of its whole length when no size is given."""
    elements = storage.untyped()._elements()
    count = elements.numel() // dtype.itemsize - offset
    size = (count,) if size is None else (size,) if isinstance(size, int) else tuple(size)
    if stride is None:
        stride = _C.empty(size, device="meta").stride()
    return _copies.shown_over(
        elements[: elements.numel() // dtype.itemsize * dtype.itemsize], dtype, size, tuple(stride), offset
    )


#: The class that older programs name.
Storage = UntypedStorage
StorageBase = _StorageBase
