"""Neural-network modules, functions and initialisers on any tensor provider."""

from typing import Any

from taeda_nn import functional, init, modules, utils
from taeda_nn import parameter as parameter
from taeda_nn.modules import *
from taeda_nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__version__ = "0.1.0"
__taeda_interface__ = {"nn": "1.0"}

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]
__all__ += [*modules.__all__, *("DataParallel", "summary")]

# Loaded when first used.
_SUBMODULES = frozenset({"_reduction", "attention", "common_types", "grad", "parallel"})
__all__ += [*(name for name in sorted(_SUBMODULES) if name[0] != "_")]
# Older names of modules that quantized models are made of.
_QUANTIZED = frozenset({"intrinsic", "qat", "quantized"})
_ELSEWHERE = {"DataParallel": "parallel", "summary": "_summary"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in _QUANTIZED:
        return import_module(f"taeda.ao.nn.{name}")
    if name in _ELSEWHERE:
        value = getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r}, the provider of slot 'nn', has no attribute {name!r}")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments of functions that make tensors (``device``, ``dtype``, ``memory_format``) among ``kwargs``.

    A key ``factory_kwargs`` may hold them too, for callers whose own arguments have the same names.

    Raises:
        TypeError: An unknown name, or one that is given twice.
    """
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    unknown = sorted(set(kwargs) - names - {"factory_kwargs"})
    if unknown:
        raise TypeError(f"factory_kwargs: unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in names & set(kwargs):
        if name in found:
            raise TypeError(f"factory_kwargs: {name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found
