"""FloatTensor and its kin: one name for a dtype and a device, from before tensors had these as attributes."""

from __future__ import annotations

from operator import index
from typing import Any

from taeda_tensor_core import _C, _older_names
from taeda_tensor_core._C import Tensor

_DTYPES = {name: dtype for dtype, name in _older_names.TENSORS.items()}


class _LegacyType(type):
    """Calls make plain tensors; `isinstance` asks for dtype and device."""

    dtype: Any
    device_type: str

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and instance.device.type == cls.device_type
        )

    def __call__(cls, *args: Any, device: Any = None, **named: Any) -> Tensor:
        if device is not None and _C.device(device).type != cls.device_type:
            raise RuntimeError(
                f"legacy constructor expects device type: {cls.device_type} but device type: {device} was passed"
            )
        if named:
            args = _by_name(cls.__name__, args, named)
        return make(cls.__name__, cls.dtype, device or cls.device_type, *args)

    @property
    def layout(cls) -> Any:
        """Dense."""
        from taeda_tensor_core._info import strided

        return strided

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _by_name(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call with `size=` or `data=`, as they would stand by position."""
    (keyword, value), *more = named.items()
    if args or more or keyword not in ("size", "data", "other", "storage"):
        raise TypeError(
            f"{name}: unexpected keyword argument {[keyword, *dict(more)][-1]!r}; expected 'device' and one of sizes "
            "by position, 'size', 'data', 'other' and 'storage'"
        )
    if keyword != "size":
        return (value,)
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name}: argument 'size' must be a tuple of ints, found {type(value).__name__}")
    return (_C.Size(value),)


def _asks(kind: str) -> property:
    return property(
        lambda cls: cls.device_type == kind, doc=f"Whether its tensors are on devices of the kind {kind!r}."
    )


for _kind in _C._reserved_devices():
    setattr(_LegacyType, f"is_{_kind}", _asks(_kind))


def _is_size(value: Any) -> bool:
    """Whether it stands for an int: NumPy's integers do, and arrays without dimensions; a lone tensor is taken over."""
    if isinstance(value, (bool, Tensor)):
        return False
    try:
        index(value)
    except TypeError:
        return False
    return True


def _is_whole(value: Any) -> bool:
    """Whether it is a tensor of one integer, which is a size beside others."""
    if not isinstance(value, Tensor) or value.dim():
        return False
    return not (value.is_floating_point() or value.is_complex() or value.dtype is _C.bool)


def make(name: str, dtype: Any, device: Any, *args: Any) -> Tensor:
    """A tensor from a sequence, of a size with unspecified elements, or over another's memory.

    Raises:
        TypeError: Arguments of another form, or a tensor of another dtype.
    """
    if not args:
        return _C.empty((0,), dtype=dtype, device=device)
    first = args[0]
    if all(_is_size(size) for size in args):
        return _C.empty(tuple(map(index, args)), dtype=dtype, device=device)
    if len(args) > 1:
        if all(_is_size(size) or _is_whole(size) for size in args):
            return _C.empty(tuple(map(index, args)), dtype=dtype, device=device)
        raise TypeError(f"{name}: expected sizes, one sequence or one tensor, found {len(args)} arguments")
    if isinstance(first, _C.Size):
        return _C.empty(first, dtype=dtype, device=device)
    if isinstance(first, Tensor):
        if first.dtype is not dtype:
            raise TypeError(f"{name}: expected a tensor of {dtype}, found one of {first.dtype}")
        return _C.Tensor(first)
    number = isinstance(first, (float, bool, complex))
    number = number or (
        getattr(first, "shape", None) == () and not hasattr(first, "__len__")
    )  # arrays have data
    if number or first is None:
        raise TypeError(f"{name}: expected sizes, a sequence or a tensor, found {type(first).__name__}")
    from taeda_tensor_core import storage

    if storage.is_storage(first):
        return storage.shown(first, dtype, 0, None, None)
    return _C.tensor(first, dtype=dtype, device=device)


_types: dict[tuple[str, str], _LegacyType] = {}


def legacy_type(name: str, device_type: str = "cpu") -> Any:
    """The type of a name, for a kind of device."""
    key = name, device_type
    if key not in _types:
        home = "torch" if device_type == "cpu" else f"torch.{device_type}"
        dtype = getattr(_C, _DTYPES[name])
        namespace = {
            "dtype": dtype,
            "device_type": device_type,
            "__module__": home,
            "__doc__": f"Tensors of {dtype}.",
        }
        _types[key] = _LegacyType(name, (), namespace)
    return _types[key]


def type_name(tensor: Tensor) -> str:
    """What `Tensor.type()` says, in the words that programs compare it with."""
    kind = tensor.device.type
    home = "torch" if kind in ("cpu", "meta") else f"torch.{kind}"
    plain = tensor.dtype.name
    name = (
        _older_names.TENSORS.get(plain) or f"{plain.replace('uint', 'UInt').replace('float', 'Float')}Tensor"
    )
    return f"{home}.{name}"


def target_of(text: str) -> tuple[Any, str]:
    """dtype and kind of device that the name of a type stands for.

    Raises:
        ValueError: There is no such type.
    """
    home, _, name = text.rpartition(".")
    package, _, kind = home.partition(".")
    if name not in _DTYPES or package not in ("", "torch", "taeda"):
        raise ValueError(
            f"type: unknown type {text!r}; expected a dtype or one of {', '.join(sorted(_DTYPES))}"
        )
    return getattr(_C, _DTYPES[name]), kind or "cpu"


def set_default_tensor_type(t: Any, /) -> None:
    """Let new tensors be of the dtype, and on the device, of a legacy type or its name.

    Raises:
        TypeError: It is no floating type, or one of a device that is not there; the default stays.
    """
    from taeda_tensor_core.default_device import set_default_device

    if isinstance(t, str):
        dtype, kind = target_of(t)
    elif isinstance(t, _LegacyType):
        dtype, kind = t.dtype, t.device_type
    else:
        raise TypeError(f"invalid type object: {t!r}; expected a type such as taeda.FloatTensor, or its name")
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if kind != "cpu":
        try:
            _C.empty((0,), device=kind)
        except RuntimeError as error:
            raise TypeError(f"set_default_tensor_type: type {t!r} is not available: {error}") from error
        set_default_device(kind)
    _C.set_default_dtype(dtype)
