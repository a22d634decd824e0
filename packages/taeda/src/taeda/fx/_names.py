"""How generated programs name functions and types: those of taeda as programs know them, under `torch`."""

from __future__ import annotations

import builtins
import types
import typing
from typing import Any

from taeda_registry.slots import nn, tensor


def _public_name(func: Any) -> str | None:
    """`torch.nn.functional.relu` and the like; None for what is not taeda's."""
    if isinstance(func, (tensor.library.Overload, tensor.library.Operator, tensor.library.Plain)):
        return f"torch.ops.{func}"
    if getattr(func, "__module__", None) is None and not isinstance(func, types.BuiltinFunctionType):
        return None
    name = tensor.overrides.resolve_name(func)
    if name is not None and name.startswith(("taeda.", "torch.")):
        return f"torch.{name[len('taeda.') :]}"
    short = getattr(func, "__name__", "")
    for home, prefix in ((nn.functional, "torch.nn.functional"), (tensor, "torch")):
        if short and getattr(home, short, None) is func:
            return f"{prefix}.{short}"
    return None


def qualified_name(func: Any) -> str:
    """The dotted name by which a function can be reached."""
    if getattr(builtins, getattr(func, "__name__", ""), None) is func:
        return str(func.__name__)
    if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)) and issubclass(
        tensor.Tensor, func.__objclass__
    ):
        return f"torch.Tensor.{func.__name__}"
    public = _public_name(func)
    if public is not None:
        return public
    name = getattr(func, "__name__", None)
    if name is None:
        return str(func)
    module = str(getattr(func, "__module__", "") or "")
    return f"{module}.{name}".replace("_operator.", "operator.", 1) if module else name


def is_public(obj: Any) -> bool:
    """Whether generated code reaches an object through `torch`."""
    try:
        hash(obj)
    except TypeError:
        return False
    return callable(obj) and not isinstance(obj, type) and _public_name(obj) is not None


def type_text(obj: Any) -> str:
    """A type as programs write it in annotations."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        if obj is tensor.Tensor:
            return "torch.Tensor"
        return f"{obj.__module__}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    origin, inner = typing.get_origin(obj), typing.get_args(obj)
    if origin is not None and inner:
        home = repr(obj).partition("[")[0]
        return f"{home}[{', '.join(map(type_text, inner))}]"
    return repr(obj)
