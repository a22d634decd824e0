"""Fake tensors: shapes, dtypes, strides and gradients of a program on any device, without memory or arithmetic.

A fake tensor is a tensor of the device 'meta' that says it lies on another one, whether or not this machine has it. It
answers by `__torch_function__`, so that gradients, modules and optimizers meet it as they meet every tensor.

Example:
    >>> with FakeTensorMode():
    ...     layer = taeda.nn.Linear(100_000, 100_000, device="cuda")
    ...     y = layer(taeda.empty(8, 100_000, device="cuda"))
    >>> y.shape, y.device
    (Size([8, 100000]), device(type='cuda', index=0))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from taeda.func import _levels
from taeda.utils._pytree import tree_iter, tree_map_only
from taeda.utils.weak import WeakTensorKeyDictionary
from taeda_registry.slots import nn, tensor

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorConverter",
    "FakeTensorMode", "UnsupportedFakeTensorException", "is_fake", "maybe_get_fake_mode", "unset_fake_temporarily",
]  # fmt: skip

_overrides = tensor.overrides


class UnsupportedFakeTensorException(RuntimeError):
    """What an operator is asked for cannot be said of tensors without elements."""


class _OfFunction(RuntimeError):
    what: str

    def __init__(self, func: Any) -> None:
        name = getattr(func, "__name__", str(func))
        super().__init__(f"{name}: {self.what} hangs on elements, which a fake tensor does not have")
        self.func = func


class DynamicOutputShapeException(_OfFunction):
    """The shape of a result hangs on elements."""

    what = "the shape of the result"


class DataDependentOutputException(_OfFunction):
    """A result hangs on elements."""

    what = "the result"


#: What a real tensor answers as always: its memory, its text, its mark.
_OF_REAL_ONES = frozenset(
    {"data_ptr", "untyped_storage", "requires_grad_", "__repr__", "__str__", "__format__"}
)
_DYNAMIC = frozenset({
    "nonzero", "argwhere", "where", "unique", "unique_consecutive", "unique_dim", "unique_dim_consecutive", "_unique2",
    "unique_all", "unique_consecutive_all", "masked_select", "bincount", "repeat_interleave", "__getitem__",
})  # fmt: skip
#: Make tensors of Python's numbers, whose elements stay known.
_OF_NUMBERS = frozenset({"tensor", "as_tensor", "scalar_tensor", "from_numpy"})


def _device_of(value: Any) -> Any:
    """A device with its number, without asking whether it is there."""
    device = tensor.device("cuda", value) if isinstance(value, int) else tensor.device(value)
    return (
        device
        if device.index is not None or device.type in ("cpu", "meta")
        else tensor.device(device.type, 0)
    )


def _asked_device(name: str, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, tuple, dict[str, Any]]:
    """The device that a call names, None for none; and the call with 'meta' in its place."""
    found = kwargs.get("device")
    if found is not None:
        kwargs = kwargs | {"device": "meta"}
    elif name == "to" and len(args) > 1 and isinstance(args[1], (str, int, tensor.device)):
        found, args = args[1], (args[0], "meta", *args[2:])
    return None if found is None else _device_of(found), args, kwargs


class FakeTensor(tensor.Tensor):
    """A tensor without elements that says it lies on a device; made by `FakeTensorMode`.

    Attributes:
        fake_device: Where it says it lies.
        fake_mode: The mode that made it.
        constant: A tensor of the elements where these are known, else None.
        sizes: Its shape with sizes that show as expressions, in graphs of exported programs; else None.
    """

    fake_device: Any
    fake_mode: FakeTensorMode
    constant: Any
    sizes: Any = None

    @classmethod
    def _over(cls, value: Any, mode: FakeTensorMode, device: Any, constant: Any = None) -> FakeTensor:
        made = value.as_subclass(cls)
        made.fake_device, made.fake_mode, made.constant = device, mode, constant
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
        fakes = [x for x in tree_iter((args, kwargs)) if isinstance(x, FakeTensor)]
        with _overrides.DisableTorchFunctionSubclass():
            return fakes[0].fake_mode._answer(func, args, kwargs or {})

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        parts = ["...", f"size={tuple(self.shape)}"]
        if self.fake_device.type != "cpu":
            parts.insert(1, f"device='{self.fake_device}'")
        if self.dtype != tensor.get_default_dtype():
            parts.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            parts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        return f"FakeTensor({', '.join(parts)})"

    @staticmethod
    def from_tensor(t: Any, fake_mode: FakeTensorMode) -> FakeTensor:
        """`fake_mode.from_tensor(t)`."""
        return fake_mode.from_tensor(t)


class FakeTensorConverter:
    """Makes fake tensors of others: the same one each time it is asked for the same."""

    def __init__(self) -> None:
        self._made = WeakTensorKeyDictionary()

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Any, **_: Any) -> FakeTensor:
        """The fake tensor of `t`, a leaf."""
        if t not in self._made:
            with _overrides.DisableTorchFunction(), tensor.no_grad():
                if any(step < 0 for step in t.stride()):  # of a view that goes backwards
                    like = tensor.empty(t.shape, dtype=t.dtype, device="meta")
                else:
                    like = tensor.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
                fake = FakeTensor._over(like, fake_mode, t.device).requires_grad_(t.requires_grad)
                fake._is_param = isinstance(t, nn.Parameter)
                self._made[t] = fake
        return self._made[t]

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: Any, device: Any, **_: Any) -> FakeTensor:
        """A tensor of the device 'meta' as a fake one of another device."""
        return FakeTensor._over(t, fake_mode, _device_of(device))


class FakeTensorMode(_overrides.TorchFunctionMode):
    """Context in which every function that makes tensors makes fake ones.

    Args:
        allow_fallback_kernels, shape_env, static_shapes, export: Taken and left alone: sizes are numbers.
        allow_non_fake_inputs: Fake tensors stand in for real ones among the arguments of a call, which are refused
            otherwise.

    Raises (calls under it):
        AssertionError: A real tensor among the arguments.
        RuntimeError: Tensors on two devices.
        DataDependentOutputException, DynamicOutputShapeException: Elements decide what the result is.

    Example:
        >>> with FakeTensorMode() as mode:
        ...     y = taeda.empty(3, 4) @ taeda.empty(4, 5)
        >>> y
        FakeTensor(..., size=(3, 5))
        >>> mode.from_tensor(taeda.ones(2))
        FakeTensor(..., size=(2,))
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        self.allow_fallback_kernels, self.allow_non_fake_inputs = (
            allow_fallback_kernels,
            allow_non_fake_inputs,
        )
        self.shape_env, self.static_shapes, self.export = shape_env, static_shapes, export
        self.fake_tensor_converter = FakeTensorConverter()

    def from_tensor(self, tensor: Any, *, static_shapes: bool | None = None, **_: Any) -> FakeTensor:
        """A fake tensor of the shape, strides, dtype and device of another; that of a fake one is itself.

        Raises:
            AssertionError: It belongs to another mode.
        """
        if isinstance(tensor, FakeTensor):
            assert tensor.fake_mode is self, "from_tensor: the fake tensor belongs to another mode"
            return tensor
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def __torch_function__(self, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
        with _overrides.DisableTorchFunctionSubclass():
            return self._answer(func, args, kwargs or {})

    def _answer(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a call gives on fake tensors."""
        name = func.__name__
        if name in ("__get__", "__set__"):
            return self._attribute(name, func.__self__.__name__, func, args)
        given = [x for x in tree_iter((args, kwargs)) if isinstance(x, tensor.Tensor)]
        if name in _overrides.QUESTIONS and not (name == "type" and len(args) + len(kwargs) > 1):
            return self._question(name, func, args, kwargs)
        if name in _OF_REAL_ONES and given and not any(isinstance(x, FakeTensor) for x in given):
            return func(*args, **kwargs)
        if name in _overrides.READS:
            return self._read(func, args, kwargs)
        if name in _OF_NUMBERS and not given:
            return self._of_numbers(func, args, kwargs)
        if name in ("cpu", "cuda") and given:
            place = args[1] if name == "cuda" and len(args) > 1 else kwargs.get("device")
            name, func, args, kwargs = "to", tensor.Tensor.to, (args[0], name if place is None else place), {}
        asked, args, kwargs = _asked_device(name, args, kwargs)
        if any(level.payload(x) is not None for level in _levels.levels() for x in given):
            return func(*args, **kwargs)  # one example of a vmap, whose batch is fake
        if any(not isinstance(x, FakeTensor) for x in given):
            args, kwargs = tree_map_only(tensor.Tensor, self._standing_in(func), (args, kwargs))
            given = [x for x in tree_iter((args, kwargs)) if isinstance(x, tensor.Tensor)]
        device = self._common(func, given) if asked is None else asked
        kwargs.pop("generator", None)
        try:
            with tensor.device("meta"):
                made = func(*args, **kwargs)
        except NotImplementedError as error:
            if name in _DYNAMIC:
                raise DynamicOutputShapeException(func) from error
            raise UnsupportedFakeTensorException(str(error)) from error
        if (name.endswith("_") and not name.endswith("__")) or "out" in kwargs or name == "__setitem__":
            for x in given:
                x.constant = None
        if asked is not None and isinstance(made, FakeTensor) and made.fake_device != asked:
            made = made.clone()
        return tree_map_only(tensor.Tensor, lambda x: self._fake(x, device), made)

    def _fake(self, made: Any, device: Any) -> FakeTensor:
        """A result: one of the arguments as it is, what is new as a fake tensor."""
        if isinstance(made, FakeTensor) and hasattr(made, "fake_mode"):
            return made
        return FakeTensor._over(made if made.device.type == "meta" else made.to("meta"), self, device)

    def _attribute(self, kind: str, name: str, func: Callable, args: tuple) -> Any:
        """An attribute of a tensor, read or written."""
        owner = args[0]
        fake = isinstance(owner, FakeTensor)
        if fake and kind == "__get__":
            device = owner.fake_device
            if name == "device":
                return device
            if name == "shape" and owner.sizes is not None:
                return owner.sizes
            if name in ("is_cpu", "is_cuda", "is_meta"):
                return device.type == name[3:]
        found = func(*args)
        if kind == "__set__":
            if fake and name == "data":
                value = self._fake(args[1], owner.fake_device)
                owner.fake_device, owner.constant = value.fake_device, value.constant
            return None
        if fake and isinstance(found, tensor.Tensor):
            return self._fake(found, owner.fake_device)
        return found

    def _question(self, name: str, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What is asked about a tensor itself, which real ones answer as well."""
        owner = args[0] if args and isinstance(args[0], FakeTensor) else None
        if owner is not None and name == "get_device":
            return -1 if owner.fake_device.index is None else owner.fake_device.index
        if owner is not None and name == "size" and owner.sizes is not None:
            dim = args[1] if len(args) > 1 else kwargs.get("dim")
            return owner.sizes if dim is None else owner.sizes[dim]
        if owner is not None and name == "type" and owner.fake_device.type not in ("cpu", "meta"):
            kind, _, last = func(*args).rpartition(".")
            return f"{kind}.{owner.fake_device.type}.{last}"
        return func(*args, **kwargs)

    def _read(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What asks for elements; answered where they are known, for a tensor made of numbers under the mode."""
        fakes = [x for x in tree_iter((args, kwargs)) if isinstance(x, FakeTensor)]
        if any(x.constant is None for x in fakes):
            raise DataDependentOutputException(func)
        args, kwargs = tree_map_only(FakeTensor, lambda x: x.constant, (args, kwargs))
        return func(*args, **kwargs)

    def _of_numbers(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> FakeTensor:
        """A tensor made of numbers, which stay known."""
        asked, _, _ = _asked_device("", (), kwargs)
        with tensor.device("cpu"):
            made = func(*args, **{key: value for key, value in kwargs.items() if key != "device"})
        device = _device_of(tensor.get_default_device()) if asked is None else asked
        fake = FakeTensor._over(made.detach().to("meta"), self, device, made.detach())
        return fake.requires_grad_(made.requires_grad)

    def _standing_in(self, func: Callable) -> Callable[[Any], FakeTensor]:
        def fake(value: Any) -> FakeTensor:
            if isinstance(value, FakeTensor):
                return value
            if value.device.type == "meta":
                return FakeTensor._over(value, self, value.device)
            if not self.allow_non_fake_inputs:
                raise AssertionError(
                    f"{func.__name__}: a real tensor of shape {tuple(value.shape)} among the arguments, expected fake "
                    "tensors; make it one with from_tensor, or the mode with allow_non_fake_inputs=True"
                )
            return self.from_tensor(value)

        return fake

    def _common(self, func: Callable, given: list[Any]) -> Any:
        """The device of all arguments; numbers on the cpu go with any."""
        found, number = None, True
        for x in given:
            device = x.fake_device
            if found is None or (number and found.type == "cpu"):
                found, number = device, x.dim() == 0
            elif device != found and not (device.type == "cpu" and x.dim() == 0):
                raise RuntimeError(
                    f"{func.__name__}: Expected all tensors to be on the same device, but found at least two devices, "
                    f"{found} and {device}!"
                )
        return _device_of(tensor.get_default_device()) if found is None else found


def maybe_get_fake_mode(t: Any) -> FakeTensorMode | None:
    """The mode of a fake tensor, None for others."""
    return t.fake_mode if isinstance(t, FakeTensor) else None


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost mode in force, None without."""
    stack = _overrides._get_current_function_mode_stack()
    return next((mode for mode in reversed(stack) if isinstance(mode, FakeTensorMode)), None)


@contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """A block whose tensors are real; yields the mode that was left, None for none."""
    mode = active_fake_mode()
    if mode is None:
        yield None
        return
    kept = []
    while True:
        kept.append(tensor._C._pop_function_mode())
        if kept[-1] is mode:
            break
    for other in reversed(kept[:-1]):
        tensor._C._push_function_mode(other)
    try:
        yield mode
    finally:
        for _ in kept[:-1]:
            tensor._C._pop_function_mode()
        for other in reversed(kept):
            tensor._C._push_function_mode(other)


def is_fake(x: Any) -> bool:
    """Whether a tensor is a fake one."""
    return isinstance(x, FakeTensor)
