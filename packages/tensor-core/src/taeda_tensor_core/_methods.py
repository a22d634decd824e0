"""Methods of Tensor that are written in Python: printing, conversions, NumPy's view of it."""

from __future__ import annotations

from taeda_tensor_core import _C, _copies, _functions, _info, _overridable, _printing, _unique, removed_names
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._sizes import of_several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


# --- NumPy ---


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = self.numpy()
    if dtype is None or array.dtype == dtype:
        return array.copy() if copy else array
    if copy is False:
        raise ValueError(f"__array__: dtype {dtype} needs a copy, but copy=False was asked for")
    return array.astype(dtype)


def __array_wrap__(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """What NumPy's function of a tensor gives, as a tensor that shares the array's memory.

    Truth values become uint8, as PyTorch has it.

    >>> np.exp(taeda.zeros(2))
    tensor([1., 1.])
    """
    return _C.from_numpy(array.astype("uint8") if array.dtype == bool else array)


# --- text ---


def __repr__(self: Tensor, *, tensor_contents: str | None = None) -> str:
    return _printing.tensor_text(self, tensor_contents)


def __format__(self: Tensor, spec: str) -> str:
    without_number = self.dim() > 0 or self.device.type == "meta" or (not spec and _C._carrier_of(self))
    if not without_number:
        return format(self.item(), spec)
    if spec:
        raise TypeError(
            f"__format__: a format such as {spec!r} needs a tensor of no dimension, found shape {tuple(self.shape)}"
        )
    return __repr__(self)


# --- the rest ---


def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """`linalg.lu_factor` under its old name; with `get_infos` its numbers of zeros too."""
    from taeda_tensor_core import _lowrank

    return _lowrank.lu(self, pivot, get_infos)


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Name of the tensor's type without `dtype`, else the tensor in that dtype, on the device that a type names.

    Args:
        dtype: A dtype, a type such as ``taeda.FloatTensor``, or its name.
        non_blocking: As in `to`.

    Example:
        >>> taeda.ones(2).type()
        'torch.FloatTensor'
    """
    from taeda_tensor_core import legacy_types

    if dtype is None:
        return legacy_types.type_name(self)
    if isinstance(dtype, _C.dtype):
        return self.to(dtype, non_blocking=non_blocking)
    if dtype is Tensor:
        return self.to(_C.get_default_dtype(), non_blocking=non_blocking)
    if isinstance(dtype, str):
        wanted, kind = legacy_types.target_of(dtype)
    elif isinstance(dtype, type) and hasattr(dtype, "device_type"):
        wanted, kind = dtype.dtype, dtype.device_type  # type: ignore[attr-defined]
    else:
        raise TypeError(f"type: argument 'dtype' must be a dtype, a tensor type or its name, found {dtype!r}")
    return self.to(kind if kind != self.device.type else self.device, wanted, non_blocking=non_blocking)


type_.__name__ = "type"


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype and on the device of `other`."""
    return self.to(other)


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """New tensor from `data` with this tensor's dtype and device unless given."""
    made = _C.tensor(
        data,
        dtype=dtype or self.dtype,
        device=device or self.device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )
    if layout is not None and str(layout).rpartition(".")[2] != "strided":
        raise RuntimeError(f"new_tensor: argument 'layout' is {layout}, expected strided")
    return made


def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Give the tensor another shape in place, row-major from its first element.

    Elements are kept, in the order of the memory, as far as they fit; new ones are unspecified, and filled as those of
    `empty` where deterministic algorithms are asked for. Views see the same memory as before: where the tensor has to
    grow beyond it, it moves to memory of its own.

    Args:
        size: The new sizes, or one sequence of them.
        memory_format: `channels_last` or `channels_last_3d` let the elements lie in that order, from the first on.

    Raises:
        RuntimeError: It requires grad, it was made under `inference_mode` and is resized outside, or it has to grow
            while a NumPy array, a buffer or a DLPack capsule holds its memory, or its memory belongs to another
            library.

    Example:
        >>> taeda.arange(6).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    if self.is_inference() and not _C.is_inference_mode_enabled():
        raise RuntimeError(
            "resize_: argument 'self' was made under inference_mode, outside of which it cannot be changed; clone() it "
            "first: Inplace update to inference tensor outside InferenceMode is not allowed"
        )
    if _C._determinism():
        kept = self.untyped_storage().nbytes() // self.element_size() - self.storage_offset()
        self._resize_to(of_several(size))
        grown = self.untyped_storage().nbytes() // self.element_size() - self.storage_offset()
        if (new := grown - max(0, kept)) > 0:
            places = self.detach().as_strided((grown,), (1,))[-new:]
            places.copy_(_C.empty(new, dtype=self.dtype, device=self.device))
    else:
        self._resize_to(of_several(size))
    if memory_format in (None, "contiguous_format"):
        return self
    if memory_format == "preserve_format":
        raise RuntimeError(
            "resize_: argument 'memory_format' is 'preserve_format', expected an order of its own"
        )
    order = _C.empty(self.shape, device="meta").contiguous(memory_format=memory_format)
    return _set(self, self.as_strided(self.shape, order.stride()))


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """resize_ to the shape of `the_template`; with `preserve_format` also to the order of its elements."""
    if memory_format == "preserve_format":
        orders = ("channels_last", "channels_last_3d")
        lies = (
            order
            for order in orders
            if not the_template.is_contiguous() and the_template.is_contiguous(memory_format=order)
        )
        memory_format = next(lies, None)
    return resize_(self, the_template.shape, memory_format=memory_format)


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """The elements in another shape, with a warning: `reshape` is what programs call today.

    Args:
        sizes: The new sizes, or one sequence of them.

    Raises:
        RuntimeError: The sizes ask for more or fewer elements than there are.

    Example:
        >>> taeda.arange(4).resize(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    import math
    import warnings

    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    wanted = of_several(sizes)
    if math.prod(wanted) != self.numel():
        raise RuntimeError(
            f"resize: argument 'sizes' is {wanted}, {math.prod(wanted)} elements, expected the {self.numel()} elements "
            f"of shape {tuple(self.shape)}; resize_ changes their number"
        )
    return self.reshape(wanted)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`resize` to the shape of another tensor."""
    return resize(self, tensor.shape)


def __reversed__(self: Tensor) -> Tensor:
    return self if self.dim() == 0 else _C.flip(self, (0,))


def __bytes__(self: Tensor) -> bytes:
    """A byte for each element, as of any sequence of numbers; `memoryview` shows the memory as it is."""
    if self.dim() == 0:
        return bytes(self.__index__())
    return bytes(self.tolist() if self.dim() == 1 else iter(self))


def untyped_storage(self: Tensor) -> Any:
    """The memory that the tensor shows, as bytes."""
    from taeda_tensor_core import storage

    return storage.UntypedStorage(self)


def storage(self: Tensor) -> Any:
    """The memory that the tensor shows, as elements of its dtype."""
    from taeda_tensor_core import storage as _storage

    return _storage.typed_storage(self)


def _typed_storage(self: Tensor) -> Any:
    """The same as `storage`."""
    return storage(self)


def _is_all_true(self: Tensor) -> Tensor:
    """The same as `all()`."""
    return self.all()


def _is_any_true(self: Tensor) -> Tensor:
    """The same as `any()`."""
    return self.any()


def storage_type(self: Tensor) -> type:
    """The older class of the tensor's memory."""
    from taeda_tensor_core import _older_names
    from taeda_tensor_core import storage as _storage

    return getattr(_storage, _older_names.STORAGES[self.dtype.name])


_set = Tensor.set_


def set_(
    self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Let the tensor show other memory, in place.

    Args:
        source: A tensor, whose memory, shape and strides it gets; a storage; nothing for an empty tensor.
        storage_offset: Where it begins in the storage, in elements.
        size: Its shape; by default all of the storage in one dimension.
        stride: Its strides; by default row-major.

    Raises:
        RuntimeError: A source of another dtype or device, or a storage that ends too soon.
    """
    if source is None:
        return _set(self, _C.empty((0,), dtype=self.dtype, device=self.device))
    if isinstance(source, Tensor):
        if size is None and storage_offset == 0:
            return _set(self, source)
        source = storage(source)
    from taeda_tensor_core import storage as _storage

    return _set(self, _storage.shown(source, self.dtype, storage_offset, size, stride))


def new(self: Tensor, *args: Any, device: Any = None, size: Any = None) -> Tensor:
    """A tensor of this one's dtype and device from sizes, a sequence or a tensor."""
    from taeda_tensor_core import legacy_types

    if size is not None and not args:
        args = tuple(size)
    return legacy_types.make("new", self.dtype, device or self.device, *args)


def is_conj(self: Tensor) -> bool:
    """False: conj() computes at once."""
    return False


def is_neg(self: Tensor) -> bool:
    """False: neg() computes at once."""
    return False


def is_distributed(self: Tensor) -> bool:
    """False: tensors belong to one process."""
    return False


def _sparse_way(name: str) -> Callable[..., Any]:
    """A method of dense tensors that leads to sparse ones; what it does is loaded when it is called."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        from taeda_tensor_core.sparse import _making

        return getattr(_making, f"dense_{name}")(self, *args, **kwargs)

    method.__doc__ = f"See `taeda.sparse`: {name.replace('_', ' ')}."
    return method


_SPARSE_WAYS = (
    "to_sparse",
    "to_sparse_coo",
    "to_sparse_csr",
    "to_sparse_csc",
    "to_sparse_bsr",
    "to_sparse_bsc",
    "sparse_mask",
    "to_dense",
)


def is_coalesced(self: Tensor) -> bool:
    """Whether a sparse tensor names no place twice; only sparse tensors have an answer."""
    raise RuntimeError(f"is_coalesced: expected a sparse tensor, found layout {self.layout!r}")


def _of_sparse_alone(name: str) -> Callable[..., Any]:
    """A method that only sparse tensors have an answer for."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{name}: expected a sparse tensor, found layout {self.layout!r}")

    method.__doc__ = "Of sparse tensors; dense ones raise RuntimeError."
    return method


_OF_SPARSE_ALONE = (
    "ccol_indices", "coalesce", "col_indices", "crow_indices", "indices", "resize_as_sparse_", "row_indices", "smm",
    "sparse_resize_", "sparse_resize_and_clear_", "sspaddmm", "values",
)  # fmt: skip


def hash_tensor(self: Tensor, dim: Any = None, *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or of the bits of elements; see `taeda.hash_tensor`."""
    from taeda_tensor_core import composed_names

    return composed_names.hash_tensor(self, dim, keepdim=keepdim, mode=mode)


_OF_QUANTIZED_ALONE = (
    "dequantize", "int_repr", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "q_scale",
    "q_zero_point",
)  # fmt: skip


def _of_quantized_alone(name: str) -> Callable[..., Any]:
    """A method that quantized tensors answer: of a dense one `dequantize` gives float32, and the others refuse."""

    def asked(self: Tensor) -> Any:
        from taeda_tensor_core import quantized

        return getattr(quantized, name)(self)

    asked.__doc__ = f"What `taeda.{name}` gives."
    return asked


def qscheme(self: Tensor) -> Any:
    """How codes are mapped to numbers; a dense tensor has no codes.

    Raises:
        NotImplementedError: It is not quantized.
    """
    raise NotImplementedError(
        f"qscheme: argument 'self' is a tensor of {self.dtype}, expected a quantized tensor"
    )


def sparse_dim(self: Tensor) -> int:
    """How many dimensions are sparse: none of a dense tensor."""
    return 0


def dense_dim(self: Tensor) -> int:
    """How many dimensions are dense: all of a dense tensor."""
    return self.dim()


def index(self: Tensor, indices: Any) -> Tensor:
    """The elements that tensors of indices name, one for each dimension; None takes a dimension whole."""
    return _C.ops.index(self, list(indices))


def _refuse_gradients(name: str, *tensors: Tensor) -> None:
    """RuntimeError where a tensor requires gradients, which no Python function of numbers has."""
    if any(t.requires_grad for t in tensors):
        raise RuntimeError(
            f"{name}: Can't call {name}() on a tensor that requires grad. Use tensor.detach() instead."
        )


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Replace every element by what a Python function makes of it and of two other tensors' (slow, cpu only)."""
    _refuse_gradients("map2_", self, x, y)
    others = (other.expand_as(self).reshape(-1).tolist() for other in (x, y))
    made = [callable(*each) for each in zip(self.reshape(-1).tolist(), *others, strict=True)]
    return self.copy_(_C.tensor(made, dtype=self.dtype, device="cpu").reshape(self.shape))


def const_data_ptr(self: Tensor) -> int:
    """Address of the first element, for reading."""
    return self.data_ptr()


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What stands in a module in the place of this tensor when `other` is loaded; subclasses may say otherwise."""
    return other.detach() if assign else self.copy_(other).detach()


def map_(self: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Replace every element by what a Python function makes of it and of another tensor's (slow, cpu only)."""
    _refuse_gradients("map_", self, tensor)
    pairs = zip(self.reshape(-1).tolist(), tensor.expand_as(self).reshape(-1).tolist(), strict=True)
    made = [callable(a, b) for a, b in pairs]
    return self.copy_(_C.tensor(made, dtype=self.dtype, device="cpu").reshape(self.shape))


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the slowest to the fastest, as they lie in memory."""
    strides = self.stride()
    return tuple(sorted(range(self.dim()), key=lambda dim: (-strides[dim], dim)))


def new_empty_strided(
    self: Tensor, size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of unspecified elements with a shape and strides, of this one's dtype and device unless given."""
    made = _C.empty_strided(
        size, stride, dtype=dtype or self.dtype, device=device or self.device, pin_memory=pin_memory
    )
    return made.requires_grad_() if requires_grad else made


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on another device, as the array API standard names it."""
    return self.to(device)


def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """`taeda.array_api`: functions of the Python array API standard that take and give arrays."""
    from taeda_tensor_core.array_api import _array

    return _array.namespace(api_version)


def _mover(name: str) -> Callable[..., Tensor]:
    """The method that brings a tensor to a device of a reserved name."""

    def move(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
        target = name if device is None else f"{name}:{device}" if isinstance(device, int) else device
        return self.to(target, non_blocking=non_blocking)

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
    made = [function(v) for v in self.reshape(-1).tolist()]
    return self.copy_(_C.tensor(made, dtype=self.dtype, device="cpu").reshape(self.shape))


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in host memory from which `device` copies without blocking.

    Args:
        device: Device type that pins the memory; None is the accelerator of this machine.

    Raises:
        NotImplementedError: The device has no pinned memory.
        RuntimeError: The tensor is not on the cpu, or there is no accelerator.

    Example:
        >>> batch.pin_memory().to(taeda.accelerator.current_accelerator(), non_blocking=True)
    """
    if device is None:
        from taeda_tensor_core.accelerator import current_accelerator

        device = current_accelerator()
    if device is None:
        raise RuntimeError("pin_memory: there is no accelerator here that could copy from pinned memory")
    return _C._pinned_copy(self, device)


def record_stream(self: Tensor, stream: Any) -> None:
    """Say that work on `stream` uses the tensor too: its memory is not given to others before that is done."""
    from taeda_tensor_core.streams import Stream, checked

    _C._stream_uses(self, checked(stream, Stream, "record_stream", "stream")._handle)


def chalf(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """Refused: complex numbers have parts of 32 or 64 bits.

    Raises:
        NotImplementedError: In any case.
    """
    raise NotImplementedError("chalf: there is no dtype complex32; use cfloat() for complex64")


_ONEDNN_DTYPES = (_C.float32, _C.bfloat16, _C.float16, _C.uint8, _C.int8)


def to_mkldnn(self: Tensor, dtype: Any = None) -> Tensor:
    """A copy, in another dtype where one is named: oneDNN computes with tensors as they are.

    Raises:
        RuntimeError: The numbers, or those asked for, are none of float32, bfloat16, float16, uint8 and int8.
    """
    wanted = self.dtype if dtype is None else dtype
    if wanted not in _ONEDNN_DTYPES or self.dtype not in _ONEDNN_DTYPES:
        found = next(d for d in (self.dtype, wanted) if d not in _ONEDNN_DTYPES)
        raise RuntimeError(f"to_mkldnn: expected float32, bfloat16, float16, uint8 or int8, found {found}")
    return self.to(wanted, copy=True)


def _make_wrapper_subclass(cls: type, *args: Any, **kwargs: Any) -> Tensor:
    """An instance of a subclass that has a shape and a dtype but no memory; see `python_dispatch`."""
    from taeda_tensor_core.python_dispatch import make_wrapper_subclass

    return make_wrapper_subclass(cls, *args, **kwargs)


METHODS = [
    __array__, __array_wrap__, _copies.__reduce_ex__, _copies.__deepcopy__, _copies.__copy__,
    __repr__, __format__, type_as, new_tensor, resize_,
    resize_as_, resize, resize_as, __reversed__, __bytes__, __array_namespace__, untyped_storage, to_device,
    where, apply_, pin_memory, record_stream, share_memory_, is_shared,
    storage_type, set_, new, is_conj, is_neg, is_distributed, is_coalesced, map_, dim_order, new_empty_strided,
    hash_tensor, qscheme, sparse_dim, dense_dim, index, map2_, module_load, const_data_ptr,
]  # fmt: skip


def _enter_device(self: Any) -> Any:
    """The device of tensors that the block makes without saying where."""
    from taeda_tensor_core.default_device import enter

    return enter(self)


def _leave_device(self: Any, *exception: object) -> None:
    from taeda_tensor_core.default_device import leave

    leave(self, *exception)


def _volatile(self: Tensor) -> bool:
    import warnings

    warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
    return False


def _put(name: str, method: Callable[..., Any]) -> None:
    """Puts a method that was made for a name on the Tensor type, where pickles find it by this name."""
    method.__name__, method.__qualname__, method.__module__ = name, f"Tensor.{name}", Tensor.__module__
    setattr(Tensor, name, method)


def install() -> None:
    """Put the methods on the Tensor type."""
    Tensor.__module__ = "taeda_tensor_core"
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
        _put(name, _mover(name))
    for name in ("eig", "lstsq", "solve", "symeig"):
        setattr(Tensor, name, removed_names.FUNCTIONS[name])
    Tensor.is_same_size = _functions.is_same_size
    Tensor.lu = lu
    _C.device.__enter__, _C.device.__exit__ = _enter_device, _leave_device
    Tensor.storage = storage
    Tensor._cdata = property(id, doc="A number that no other tensor has while this one lives.")
    for method in (_typed_storage, _is_all_true, _is_any_true):
        setattr(Tensor, method.__name__, method)
    Tensor.__rdiv__ = Tensor.__rtruediv__
    Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)
    Tensor.chalf = chalf
    Tensor.to_mkldnn = to_mkldnn
    Tensor.type = type_
    for name in _OF_SPARSE_ALONE:
        _put(name, _of_sparse_alone(name))
    for name in _OF_QUANTIZED_ALONE:
        _put(name, _of_quantized_alone(name))
    Tensor.grad_dtype = property(
        lambda self: self.dtype, doc="The dtype that gradients have: the tensor's own."
    )
    for name in _SPARSE_WAYS:
        _put(name, _sparse_way(name))
    Tensor.volatile = property(_volatile, doc="False, with a warning: what it was for is `no_grad`.")
    Tensor.layout = property(lambda self: _info.strided, doc="How the elements are kept: ``taeda.strided``.")
    for name in (
        "is_mkldnn",
        "is_nested",
        "is_vulkan",
        "is_xla",
        "is_mtia",
        "is_ipu",
        "is_maia",
        "is_hpu",
        "is_sparse_csr",
    ):
        setattr(Tensor, name, property(lambda self: False, doc="False."))
    Tensor.name = property(lambda self: None, doc="None.")
    Tensor.__array_priority__ = 1000  # NumPy then leaves operators to the tensor
    # Reduction reads the object's own class and state, which no other class can answer for.
    _overridable.overridable(
        function for function in vars(Tensor).values() if function is not _copies.__reduce_ex__
    )
