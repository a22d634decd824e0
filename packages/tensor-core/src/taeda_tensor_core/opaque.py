"""Opaque layouts: tensors whose bytes only their device understands.

A device's plug-in has a layout by having operators of these names, from C or from Python:

* ``mydev::pack_tiles(Tensor self) -> Tensor`` gives the bytes of a tensor of the device, in any shape and dtype;
* ``mydev::unpack_tiles(Tensor packed, int[] shape, DType dtype) -> Tensor`` makes the tensor again;
* ``mydev::linear_tiles(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor``, one for each function that the
  device computes with such tensors: with the function's arguments, where opaque ones come as their bytes.

`taeda.backends.to_layout(tensor, "tiles")` gives the opaque tensor, `to_dense` makes the plain one again. What the
device has no operator for is refused by name. Opaque tensors are saved as plain ones, with the name of their layout.
"""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, _info
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._printing import formatted
from taeda_tensor_core.overrides import path_of

__all__ = ["OpaqueTensor", "to_layout"]


class OpaqueTensor(Tensor):
    """A tensor in a layout of its device. Made by `taeda.backends.to_layout`.

    Attributes:
        packed: The bytes, a tensor as the device's `pack` operator made it.
        layout: The layout's name.
    """

    packed: Tensor
    _way: str
    layout = property(lambda self: _info.plugin_layout(self._way))

    @staticmethod
    def around(packed: Tensor, way: str, shape: tuple[int, ...], dtype: Any) -> OpaqueTensor:
        """The opaque tensor of what a device has packed."""
        made = Tensor._make_wrapper_subclass(OpaqueTensor, tuple(shape), dtype=dtype, device=packed.device)
        made.packed, made._way = packed, way
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        parts = path_of(func)
        with _C.DisableTorchFunctionSubclass():
            attribute = parts[-1] == "__get__"
            name = parts[-2] if attribute else parts[-1]
            if name in _OWN:
                return _OWN[name](*args, **(kwargs or {}))
            if attribute or name in _FACTS:
                return func(*args, **(kwargs or {}))
        return _computed(name.strip("_"), args, kwargs or {})

    _asks_for_own_form = True

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Operators that are met by another way than a public function."""
        return _computed(func.operator.__name__.partition(".")[0], args, kwargs or {})

    def __repr__(self) -> str:
        return (
            f"tensor(..., size={tuple(self.shape)}, dtype={self.dtype}, device='{self.packed.device}', "
            f"layout={self._way})"
        )

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return formatted(self, spec)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return restored, saved_parts(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> OpaqueTensor:
        return _OWN["clone"](self)

    __hash__ = Tensor.__hash__


def to_layout(tensor: Tensor, layout: str) -> Tensor:
    """The tensor in an opaque layout of its device; "strided" stands for the plain one.

    Args:
        tensor: Of a device whose plug-in has the layout; what it packs is no part of a graph of gradients.
        layout: Its name.

    Raises:
        NotImplementedError: The device has no such layout.
        ValueError: `layout` is no name.

    Example:
        >>> weight = taeda.backends.to_layout(model.weight.detach().to("mydev"), "tiles")
        >>> taeda.nn.functional.linear(x, weight)
    """
    if isinstance(tensor, OpaqueTensor):
        if layout == tensor._way:
            return tensor
        tensor = to_dense(tensor)
    if layout == "strided":
        return tensor
    if not isinstance(layout, str) or not layout.isidentifier():
        raise ValueError(f"to_layout: argument 'layout' must be a name, found {layout!r}")
    plain = tensor.detach()
    packed = _operator(plain.device.type, "pack", layout, "to_layout")(plain)
    return OpaqueTensor.around(packed, layout, tuple(plain.shape), plain.dtype)


def to_dense(tensor: OpaqueTensor) -> Tensor:
    """The plain tensor, made by its device."""
    with _C.DisableTorchFunctionSubclass():
        shape, dtype = tuple(tensor.shape), tensor.dtype
    unpack = _operator(tensor.packed.device.type, "unpack", tensor._way, "to_dense")
    return unpack(tensor.packed, shape, dtype)


def saved_parts(tensor: OpaqueTensor) -> tuple[Tensor, str]:
    """What a file keeps of it."""
    return to_dense(tensor), tensor._way


def restored(dense: Tensor, layout: str) -> Tensor:
    """What a file has kept: in its layout where the tensor's device has it, else plain."""
    try:
        return to_layout(dense, layout)
    except NotImplementedError:
        return dense


def _found(device: str, what: str, layout: str) -> Any:
    """The operator of a device; None without."""
    from taeda_tensor_core.library import op

    try:
        return op(f"{device}::{what}_{layout}")
    except LookupError:
        return None


def _operator(device: str, what: str, layout: str, asking: str) -> Any:
    found = _found(device, what, layout)
    if found is None:
        raise NotImplementedError(
            f"{asking}: device '{device}' has no layout '{layout}': there is no operator {device}::{what}_{layout}"
        )
    return found


def _computed(name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """What the device's operator for opaque arguments gives."""
    given = [*args, *kwargs.values()]
    listed = [a for group in given if isinstance(group, (list, tuple)) for a in group]
    first, *others = (a for a in (*given, *listed) if isinstance(a, OpaqueTensor))
    alone = not any(isinstance(a, OpaqueTensor) for a in listed) and all(a._way == first._way for a in others)
    found = _found(first.packed.device.type, name, first._way) if alone else None
    if found is None:
        raise NotImplementedError(
            f"{name}: not defined for layout '{first._way}' of device '{first.packed.device.type}'; "
            "use to_dense() first"
        )
    plain = [a.packed if isinstance(a, OpaqueTensor) else a for a in args]
    return found(*plain, **{k: a.packed if isinstance(a, OpaqueTensor) else a for k, a in kwargs.items()})


def _moved(x: OpaqueTensor, *args: Any, **kwargs: Any) -> Tensor:
    """Plain elsewhere, as the other device does not understand the bytes; itself where nothing changes."""
    dense = to_dense(x)
    made = dense.to(*args, **kwargs)
    return x if made is dense else made


_FACTS = frozenset({"dim", "size", "numel", "nelement", "ndimension", "element_size", "is_floating_point", "is_complex",
                    "is_signed", "get_device", "__len__", "is_tensor"})  # fmt: skip
_OWN: dict[str, Any] = _info.FACTS_OUTSIDE_GRAPHS | {
    "to_dense": lambda x, *_, **__: to_dense(x),
    "nbytes": lambda x: x.packed.nbytes,
    "to": _moved,
    "cpu": lambda x: _moved(x, "cpu"),
    "tolist": lambda x: to_dense(x).tolist(),
    "clone": lambda x, **_: OpaqueTensor.around(x.packed.clone(), x._way, tuple(x.shape), x.dtype),
    "detach": lambda x: x,
}
