"""Moving and converting a module's parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from taeda_nn._bind import Tensor, no_grad, tensor
from taeda_nn.modules._members import renew_member
from taeda_nn.parameter import Parameter

if TYPE_CHECKING:
    from taeda_nn.modules.module import Module

Self = TypeVar("Self", bound="Converting")


#: Whether conversions give modules new parameters instead of giving their parameters new data.
overwrites_parameters = False


class Converting:
    """The conversions of ``Module``; each works in place and returns the module."""

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        module: Module = self  # type: ignore[assignment]
        if recurse:
            for child in module.children():
                child._apply(fn)
        with no_grad():
            for name, param in module._parameters.items():
                if param is None:
                    continue
                grad, converted = param.grad, fn(param)
                # Both before either is changed: memory for the second may be refused.
                new = None if grad is None else fn(grad).requires_grad_(grad.requires_grad)
                # One tensor cannot turn from dense to sparse.
                if overwrites_parameters or converted.layout != param.layout:
                    param = module._parameters[name] = Parameter(converted, requires_grad=param.requires_grad)
                elif converted is not param:
                    param.data = converted
                if new is not None:
                    param.grad = new
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    renew_member(module, "buffer", name, fn(buffer))
        return self

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Moves or converts all parameters and buffers: ``to(device)``, ``to(dtype)``, ``to(tensor)`` or keywords.

        The dtype, floating-point or complex, is applied to floating-point and complex tensors alone.

        Raises:
            TypeError: An argument is of no such kind, or the dtype is integral.
        """
        device, dtype, options = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"Module.to: dtype must be floating-point or complex, got {dtype}")

        def convert(value: Tensor) -> Tensor:
            wanted = dict(options)
            if "memory_format" in wanted and value.dim() not in (4, 5):
                del wanted["memory_format"]  # orders of the elements are for images and volumes
            if device is not None:
                wanted["device"] = device
            if dtype is not None and (value.is_floating_point() or value.is_complex()):
                wanted["dtype"] = dtype
            return value.to(**wanted) if wanted else value

        return self._apply(convert)

    def _to_float(self: Self, dtype: Any) -> Self:
        return self._apply(lambda value: value.to(dtype=dtype) if value.is_floating_point() else value)

    def float(self: Self) -> Self:
        """Converts floating-point parameters and buffers to float32."""
        return self._to_float(tensor.float32)

    def double(self: Self) -> Self:
        """Converts floating-point parameters and buffers to float64."""
        return self._to_float(tensor.float64)

    def half(self: Self) -> Self:
        """Converts floating-point parameters and buffers to float16."""
        return self._to_float(tensor.float16)

    def bfloat16(self: Self) -> Self:
        """Converts floating-point parameters and buffers to bfloat16."""
        return self._to_float(tensor.bfloat16)

    def type(self: Self, dst_type: Any) -> Self:
        """Converts all parameters and buffers to dtype ``dst_type``, or to that of a type of tensors by its name."""
        return self._apply(
            lambda value: value.type(dst_type) if isinstance(dst_type, str) else value.to(dtype=dst_type)
        )

    def cpu(self: Self) -> Self:
        """Moves all parameters and buffers to the CPU."""
        return self._apply(lambda value: value.to(device="cpu"))

    def cuda(self: Self, device: int | str | None = None) -> Self:
        """Moves all parameters and buffers to a GPU."""
        return self._move_to("cuda", device)

    def xpu(self: Self, device: int | str | None = None) -> Self:
        """Moves all parameters and buffers to a device of kind xpu."""
        return self._move_to("xpu", device)

    def ipu(self: Self, device: int | str | None = None) -> Self:
        """Moves all parameters and buffers to a device of kind ipu."""
        return self._move_to("ipu", device)

    def mtia(self: Self, device: int | str | None = None) -> Self:
        """Moves all parameters and buffers to a device of kind mtia."""
        return self._move_to("mtia", device)

    def _move_to(self: Self, kind: str, device: Any) -> Self:
        place = kind if device is None else f"{kind}:{device}" if isinstance(device, int) else device
        return self._apply(lambda value: value.to(device=place))

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Gives all parameters and buffers new, uninitialised memory on ``device``."""
        return self._apply(lambda value: tensor.empty_like(value, device=device), recurse)

    def share_memory(self: Self) -> Self:
        """Moves all parameters, their gradients and all buffers to memory that other processes can map."""
        module: Module = self  # type: ignore[assignment]
        for value in (*module.parameters(), *module.buffers()):
            value.share_memory_()
            if value.grad is not None:
                value.grad.share_memory_()
        return self


#: Python's types of numbers, which stand for the dtype that holds their numbers exactly.
_TYPES = {float: "float64", complex: "complex128", int: "int64", bool: "bool"}


def _parse_to(args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    device, dtype, options = kwargs.pop("device", None), kwargs.pop("dtype", None), {}
    for name in ("non_blocking", "memory_format"):
        if kwargs.get(name) not in (None, False):
            options[name] = kwargs[name]
        kwargs.pop(name, None)
    other = kwargs.pop("tensor", None)
    if kwargs:
        raise TypeError(f"Module.to: unexpected keyword {next(iter(kwargs))!r}")
    for arg in (*args, other):
        if isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, (tensor.dtype, type)):
            dtype = arg
        elif isinstance(arg, bool):
            if arg:
                options["non_blocking"] = True
        elif isinstance(arg, (str, int, tensor.device)):
            device = arg
        elif arg is not None:
            raise TypeError(
                f"Module.to: expected a device, dtype, Tensor or bool (non_blocking), got {type(arg).__name__}"
            )
    if isinstance(dtype, type) and dtype in _TYPES:
        dtype = getattr(tensor, _TYPES[dtype])
    if dtype is not None and not isinstance(dtype, tensor.dtype):
        raise TypeError(f"Module.to: argument 'dtype' must be a dtype, got {type(dtype).__name__}")
    order = options.get("memory_format")
    if order is not None and not isinstance(order, getattr(tensor, "memory_format", object)):
        raise TypeError(
            f"Module.to: argument 'memory_format' must be a memory format, got {type(order).__name__}"
        )
    return device, dtype, options
