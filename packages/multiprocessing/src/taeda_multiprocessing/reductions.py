"""How tensors are pickled for other processes: their memory as a handle, the rest as usual."""

from __future__ import annotations

import math
import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any

from taeda_multiprocessing import _table, devices
from taeda_multiprocessing._table import leave_dead
from taeda_registry import resolve
from taeda_registry.slots import tensor

__all__ = [
    "StorageWeakRef",
    "empty_shared",
    "init_reductions",
    "is_shared",
    "leave_dead",
    "rebuild_tensor",
    "reduce_tensor",
    "send_small_as_bytes",
    "share_memory_",
]


class StorageWeakRef:
    """Tells a storage from all others, also when it has ended, and does not hold it.

    Attributes:
        cdata: The storage's `_cdata`.

    Example:
        >>> x = taeda.zeros(3)
        >>> seen = {StorageWeakRef(x.untyped_storage())}
        >>> StorageWeakRef(x[1:].untyped_storage()) in seen
        True
    """

    __slots__ = ("_number", "_watch", "cdata")

    def __init__(self, storage: Any) -> None:
        self.cdata: int = storage._cdata
        self._number, self._watch = tensor.sharing.watch_storage(storage)

    def expired(self) -> bool:
        """Whether the storage has ended."""
        return tensor.sharing.storage_ended(self._watch)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self._number == other._number

    def __hash__(self) -> int:
        return hash(self._number)


def is_shared(self: Any) -> bool:
    """Whether the tensor's memory can be mapped by other processes; that of devices that share theirs always can.

    Example:
        >>> taeda.zeros(3).share_memory_().is_shared()
        True
    """
    if self.device.type != "cpu":
        return devices.shares(self.device)
    return _table.find(tensor.sharing.storage_facts(self)[0]) is not None


def share_memory_(self: Any) -> Any:
    """Move the tensor, and the tensor that it is a view of, to memory that other processes can map.

    Processes that receive it see what either writes. Nothing happens where it is shared already, where it has no
    elements, and on devices whose memory is shared by handles.

    Returns:
        The tensor itself.

    Raises:
        RuntimeError: Other tensors or arrays show the same memory and would stay behind.
        OSError: The system has no memory for it.

    Example:
        >>> x = taeda.zeros(3).share_memory_()
    """
    if self.device.type != "cpu" or not tensor.sharing.storage_facts(self)[1] or is_shared(self):
        return self
    if not _move([self]):
        raise RuntimeError(
            f"share_memory_: other tensors or arrays show the memory of this tensor of shape {tuple(self.shape)} and "
            "would not follow it; share it before they are made, or share a clone()"
        )
    return self


def empty_shared(shape: tuple[int, ...], dtype: Any) -> Any:
    """A new row-major tensor in shared memory, not initialised.

    Raises:
        OSError: The system has no memory for it.

    Example:
        >>> out = mp.reductions.empty_shared((64, 3, 32, 32), taeda.float32)
    """
    steps = [1]
    for size in reversed(shape[1:]):
        steps.insert(0, steps[0] * max(size, 1))
    count = math.prod(shape)
    memory = tensor.from_numpy(_table.allocate(count * dtype.itemsize))
    return tensor.sharing.shown_over(memory, dtype, shape, tuple(steps[: len(shape)]), 0)


def _move(values: list[Any]) -> bool:
    """Bring the memory that all of some tensors show to a block; False where that would leave others behind."""
    _, nbytes, holders = tensor.sharing.storage_facts(values[0])
    movers = {id(one): one for value in values for one in (value._base, value) if one is not None}
    whole = tensor.sharing.storage_bytes(values[0])
    if holders != len(movers) or whole is None:
        return False
    memory = tensor.from_numpy(_table.allocate(nbytes))
    memory.copy_(whole)
    for one in movers.values():
        place = (one.dtype, tuple(one.shape), one.stride(), one.storage_offset())
        one.data = tensor.sharing.shown_over(memory, *place)
    return True


def _try_move(values: list[Any]) -> None:
    """Before tensors over one memory are sent, move them, so that sender and receiver show the same."""
    # Helper threads of queues and pools run beside the program, which may be computing with them.
    if threading.current_thread().daemon or values[0].device.type != "cpu":
        return
    address, nbytes, _ = tensor.sharing.storage_facts(values[0])
    if nbytes > _alone and _table.find(address) is None:
        try:
            _move(values)
        except OSError as error:
            _table.warn_of_copies(nbytes, error)


def share_nested(value: Any) -> None:
    """Move the tensors of (nested) plain containers."""
    found: dict[int, list[Any]] = {}
    _collect(value, found)
    for values in found.values():
        _try_move(values)


def _collect(value: Any, found: dict[int, list[Any]]) -> None:
    """Tensors by the address of their memory."""
    if isinstance(value, tensor.Tensor) and tensor.sharing.wraps(value):
        _collect(value.__dict__, found)
    elif isinstance(value, tensor.Tensor):
        found.setdefault(tensor.sharing.storage_facts(value)[0], []).append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, found)


def rebuild_memory(handle: _table.Handle) -> Any:
    """Undo what sending did to a storage: its bytes as a tensor."""
    return tensor.from_numpy(_table.receive(handle))


def rebuild_with_grad(rebuild: Any, arguments: tuple[Any, ...], grad: Any) -> Any:
    """Undo what sending did to a tensor that requires grad; a gradient that is shared comes along."""
    resolve("autograd")  # a new process has not loaded it
    made = rebuild(*arguments)
    made.grad = grad
    return made


def _reduce_tensor(value: Any) -> Any:
    if value.requires_grad and not value.is_leaf:
        raise RuntimeError(
            f"multiprocessing: a tensor of shape {tuple(value.shape)} that was computed from others and requires grad "
            "cannot be sent, since its graph cannot follow it; send tensor.detach()"
        )
    _try_move([value])
    reduced = devices.reduced(value)
    if reduced is None and type(value) is _tensor_type and value.device.type == "cpu":
        reduced = tensor.sharing.reduced_over_memory(value)  # also where its pickles are to be PyTorch's
    if not value.requires_grad:
        return NotImplemented if reduced is None else reduced
    rebuild, arguments, *state = value.__reduce_ex__(4) if reduced is None else reduced
    grad = value.grad if value.grad is not None and is_shared(value.grad) else None
    return rebuild_with_grad, (rebuild, arguments, grad), *state


def rebuild_tensor(value: Any) -> Any:
    """Undo `reduce_tensor`: the tensor, which shows the memory that was sent."""
    return value


def reduce_tensor(value: Any) -> tuple[Any, tuple[Any, ...]]:
    """A function, and what it is called with, here or by whom it is sent to, to have a tensor over the same memory.

    The memory goes by handle where `ForkingPickler` pickles the arguments, as messages do, and by its bytes otherwise.

    Raises (when it is pickled for a message):
        RuntimeError: The tensor requires grad and was computed from others.

    Example:
        >>> rebuild, arguments = mp.reductions.reduce_tensor(taeda.ones(3))
        >>> rebuild(*arguments)
        tensor([1., 1., 1.])
    """
    _try_move([value])
    return rebuild_tensor, (value,)


def _reduce_memory(memory: Any) -> Any:
    data = memory.data
    if data.device.type != "cpu":
        return devices.lend(memory)
    handle = _table.send(data.data_ptr())
    if handle is not None:
        return rebuild_memory, (handle,)
    if data.numel() <= _alone:
        return NotImplemented
    try:
        block = _table.allocate(data.numel())
    except OSError as error:
        _table.warn_of_copies(data.numel(), error)
        return NotImplemented
    copy = tensor.from_numpy(block)
    copy.copy_(data)
    return rebuild_memory, (_table.send(copy.data_ptr()),)


def _reducer_override(self: ForkingPickler, value: Any) -> Any:
    """Asked by the pickler for every object that is not of a built-in type."""
    kind = type(value)
    if kind is _memory_type:
        return _reduce_memory(value)
    if issubclass(kind, _tensor_type) and not tensor.sharing.wraps(value):
        return _reduce_tensor(value)
    return NotImplemented


_alone = 0


def send_small_as_bytes(nbytes: int) -> None:
    """Let this process send memory of up to so many bytes by value: what nobody is to write to travels quicker so.

    Example:
        >>> mp.reductions.send_small_as_bytes(2048)
    """
    global _alone
    _alone = nbytes


_memory_type: Any = None
_tensor_type: Any = ()


def init_reductions() -> None:
    """Teach Python's pickler of messages to send tensors; done by importing the package."""
    global _memory_type, _tensor_type
    if not _table.supported or not hasattr(tensor, "sharing"):
        return
    _memory_type, _tensor_type = tensor.sharing.Memory, tensor.Tensor
    ForkingPickler.reducer_override = _reducer_override  # type: ignore[method-assign]
    tensor.Tensor.is_shared = is_shared
    tensor.Tensor.share_memory_ = share_memory_
    getattr(tensor, "overridable", list)([is_shared, share_memory_])
    getattr(tensor.sharing, "collectors", []).append(devices.collect)
