"""Copies and pickles of tensors; those that share memory share the copy's memory."""

from __future__ import annotations

import weakref
from _thread import get_ident
from collections import OrderedDict

from taeda_tensor_core import _C
from taeda_tensor_core._C import Generator, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _plain_bytes(tensor: Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if tensor.is_floating_point() and tensor.itemsize < 4:  # some of these have no buffer format
        flat = flat.view(_C.uint16 if tensor.itemsize == 2 else _C.uint8)
    return memoryview(flat).tobytes()


def _storage_key(tensor: Tensor) -> tuple[str, int, int] | None:
    """What names the storage while it lives; None where tensors cannot be shown as views of one run of bytes."""
    return _place_of(tensor) if tensor.device.type == "cpu" else None


def _place_of(tensor: Tensor) -> tuple[str, int, int] | None:
    """The same on any device that has memory."""
    address, size, _, _, first, _ = tensor._storage_facts()
    item = tensor.itemsize
    if not size or size % item or (first - address) % item:
        return None
    return str(tensor.device), address, size


def _storage_bytes(tensor: Tensor) -> Tensor:
    """All bytes of the storage as a uint8 tensor that shares it."""
    size = tensor._storage_facts()[1] // tensor.itemsize
    return tensor.detach().as_strided((size,), (1,), 0).view(_C.uint8)


def storage_bytes(tensor: Tensor) -> Tensor | None:
    """The same where the storage is a run of whole elements from the tensor's own raster; else None."""
    return _storage_bytes(tensor) if _storage_key(tensor) is not None else None


def shown_over(memory: Tensor, dtype: Any, shape: tuple, stride: tuple, offset: int) -> Tensor:
    """A tensor over all bytes of a storage, which is nobody's view."""
    whole = memory.view(dtype)
    view = whole.as_strided(shape, stride, whole.storage_offset() + offset)
    return _C.empty((0,), dtype=dtype, device=memory.device).set_(view)


class Memory:
    """A storage inside a pickle: one object for all tensors over it, so that they share memory again."""

    def __init__(self, tensor: Tensor) -> None:
        self.data = _storage_bytes(tensor)
        self.end: object = None

    def __reduce__(self) -> tuple:
        return rebuild_memory, (_plain_bytes(self.data),)


#: In the place of a dtype: the storage says nothing of its elements.
UNTYPED = "untyped"


class TypedMemory(Memory):
    """The same as programs of PyTorch read it: a storage whose elements have a dtype, or an untyped one."""

    def __init__(self, tensor: Tensor, dtype: Any) -> None:
        super().__init__(tensor)
        self.dtype = dtype

    def __reduce__(self) -> tuple:
        from taeda_tensor_core import storage
        from taeda_tensor_core.checkpoint.write_torch import encode

        held: Any = self.data.untyped_storage()
        if self.dtype != UNTYPED:
            held = storage.TypedStorage(wrap_storage=held, dtype=self.dtype)
        return storage._load_from_bytes, (b"".join(encode(held)),)


# By thread: a pickle that another thread writes meanwhile has objects of its own, which end when that one is done.
# Not a WeakValueDictionary: its entries are removed by Python functions, in which a Ctrl-C would be lost.
_memories: dict[tuple, weakref.ref[Memory]] = {}


def _memory_of(tensor: Tensor, place: tuple, dtype: Any = None) -> Memory:
    key = (get_ident(), dtype, *place)
    known = _memories.get(key)
    found = known() if known is not None else None
    if found is None:
        found = Memory(tensor) if dtype is None else TypedMemory(tensor, dtype)
        _memories[key] = weakref.ref(found)
        found.end = _C._at_end(_memories.pop, key, None)
    return found


def rebuild_memory(data: bytes) -> Tensor:
    """Undo what pickling did to a storage."""
    memory = _C.empty((len(data),), dtype=_C.uint8, device="cpu")
    memoryview(memory)[:] = data
    return memory


def rebuild_view(
    cls: type,
    memory: Tensor,
    dtype: Any,
    shape: tuple,
    stride: tuple,
    offset: int,
    requires_grad: bool,
    state: dict | None,
) -> Tensor:
    """Undo what pickling did to a tensor over a storage that others may share."""
    return _finished(cls, shown_over(memory, _dtype(dtype), shape, stride, offset), requires_grad, state)


def _pickled(dtype: Any) -> Any:
    """A dtype in what a reduction gives: by its name, as YAML takes no object whose reduction is one."""
    return dtype.name if getattr(_C, dtype.name, None) is dtype else dtype


def _dtype(pickled: Any) -> Any:
    return getattr(_C, pickled) if isinstance(pickled, str) else pickled


def _finished(cls: type, tensor: Tensor, requires_grad: bool, state: dict | None) -> Tensor:
    if cls is not Tensor:
        tensor = Tensor._make_subclass(cls, tensor, requires_grad)
    elif requires_grad:
        tensor.requires_grad_()
    if state:
        tensor.__dict__.update(state)
    return tensor


def rebuild_tensor(
    cls: type,
    data: bytes | None,
    shape: tuple,
    dtype: Any,
    device: str,
    layout: str,
    requires_grad: bool,
    state: dict | None,
) -> Tensor:
    """Undo what pickling did; `data` is None for tensors without memory."""
    if data is None:
        tensor = _C.empty(shape, dtype=_dtype(dtype), device=device)
    else:
        tensor = rebuild_memory(data).view(_dtype(dtype)).reshape(shape).detach().to(device)
        if layout == "channels_last":
            tensor = tensor.contiguous(memory_format="channels_last")
    return _finished(cls, tensor, requires_grad, state)


def rebuild_generator(device: Any, state: Tensor) -> Generator:
    """Undo what pickling a Generator did."""
    return Generator(device).set_state(state)


def _over_memory(tensor: Tensor, key: tuple) -> tuple:
    place = (_pickled(tensor.dtype), tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    state = _C._state_of(tensor)
    return rebuild_view, (type(tensor), _memory_of(tensor, key), *place, tensor.requires_grad, state)


def stands_as_torch() -> bool:
    """Whether the library stands under the name of PyTorch, whose own names its pickles have then."""
    return repr(_C.float32) == "torch.float32"


def _as_pytorch(tensor: Tensor) -> tuple | None:
    """The reduction that a tensor has in PyTorch, where the library stands under that name; else None."""
    if type(tensor) is not Tensor or not stands_as_torch() or _C._state_of(tensor):
        return None
    from taeda_tensor_core.checkpoint import torch_names

    sizes, grad = (tuple(tensor.shape), tensor.stride()), tensor.requires_grad
    if tensor.device.type == "meta":
        return torch_names.rebuild_meta, (tensor.dtype, *sizes, grad)
    key = _storage_key(tensor)
    if key is None and (tensor.device.type != "cpu" or tensor.numel()):
        return None
    typed = tensor.dtype.name in torch_names.STORAGES.values()
    shown = tensor.dtype if typed else UNTYPED  # newer dtypes have no storages of their own
    offset = tensor.storage_offset()
    if key is None:
        memory, offset = TypedMemory(_C.empty((0,), dtype=tensor.dtype, device="cpu"), shown), 0
    else:
        memory = _memory_of(tensor, key, shown)
    if typed:
        return torch_names.rebuild_tensor, (memory, offset, *sizes, grad, OrderedDict())
    return torch_names.rebuild_typed, (memory, offset, *sizes, grad, OrderedDict(), tensor.dtype)


def reduced_as_pytorch(parameter: Tensor) -> tuple | None:
    """The reduction that a parameter has in PyTorch, where the library stands under that name; else None."""
    if not stands_as_torch():
        return None
    from taeda_tensor_core.checkpoint.torch_names import rebuild_parameter

    return rebuild_parameter, (parameter.data, parameter.requires_grad, OrderedDict())


def reduced_over_memory(tensor: Tensor) -> tuple | None:
    """How a tensor of any device is pickled as a view of its storage, for messages that carry storages by handles.

    None where it cannot be shown as one: without memory, or off its storage's raster.
    """
    key = _place_of(tensor)
    return None if key is None else _over_memory(tensor, key)


def __reduce_ex__(self: Tensor, protocol: int) -> tuple:
    if (found := _as_pytorch(self)) is not None:
        return found
    key = _storage_key(self)
    if key is not None:
        return _over_memory(self, key)
    meta = self.device.type == "meta"
    last = self.is_contiguous(memory_format="channels_last") and not self.is_contiguous()
    data = None if meta else _plain_bytes(self)
    layout = "channels_last" if last else "contiguous_format"
    args = (
        type(self),
        data,
        tuple(self.shape),
        _pickled(self.dtype),
        str(self.device),
        layout,
        self.requires_grad,
        _C._state_of(self),
    )
    return rebuild_tensor, args


def _like(self: Tensor, made: Tensor) -> Tensor:
    """`made` with the class and requires_grad of `self`."""
    if type(self) is not Tensor:
        return Tensor._make_subclass(type(self), made, self.requires_grad)
    return made.requires_grad_() if self.requires_grad else made


def _deep_values(self: Tensor, memo: dict) -> Tensor:
    """The values in new memory; tensors that share memory share the copy, which is of the whole storage."""
    key = _storage_key(self)
    if key is None:
        return self.detach().clone()
    if key not in memo:
        source = _storage_bytes(self)
        memo[key] = source, source.clone()  # the source is kept, so that no other storage takes its address
    return shown_over(memo[key][1], self.dtype, tuple(self.shape), self.stride(), self.storage_offset())


def wraps(tensor: Tensor) -> bool:
    """Whether a tensor has no memory of its own: other tensors, among its attributes, say what it is."""
    return "_wrapped_device" in getattr(tensor, "__dict__", ())


def _copied_wrapper(self: Tensor) -> Tensor:
    made = self.detach().clone()
    if type(made) is not type(self):
        raise RuntimeError(
            f"deepcopy: clone() of a {type(self).__name__} gave a {type(made).__name__}; a wrapping tensor can only "
            "be copied deeply when its class computes clone(), or has a __deepcopy__ of its own"
        )
    return made.requires_grad_() if self.requires_grad else made


def __deepcopy__(self: Tensor, memo: dict) -> Tensor:
    done = memo.get(id(self))
    if done is not None:
        return done
    if not self.is_leaf:
        raise RuntimeError(
            "deepcopy: Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol, found "
            f"one with grad_fn={self.grad_fn!r}; use tensor.detach().clone()"
        )
    from copy import deepcopy

    made = memo[id(self)] = _copied_wrapper(self) if wraps(self) else _like(self, _deep_values(self, memo))
    if self.grad is not None:
        made.grad = deepcopy(self.grad, memo)
    state = _C._state_of(self)
    if state:
        made.__dict__.update(deepcopy(state, memo))
    return made


def __copy__(self: Tensor) -> Tensor:
    made = _like(self, self.detach())
    state = _C._state_of(self)
    if state:
        made.__dict__.update(state)
    return made
