"""Home of ``taeda.utils.data``, the provider of slot ``data``, of parts of other slots, and of small tools."""

from __future__ import annotations

_MODULES = frozenset({
    "_contextlib", "_debug_mode", "_device", "_foreach_utils", "_python_dispatch", "_pytree", "_triton",
    "_typing_utils", "backcompat", "backend_registration", "benchmark", "bottleneck", "checkpoint", "collect_env",
    "cpp_backtrace", "cpp_extension", "data", "deterministic", "dlpack", "file_baton", "flop_counter", "hooks",
    "mkldnn", "mobile_optimizer", "model_zoo", "module_tracker", "tensorboard", "weak",
})  # fmt: skip
_NAMES = {
    "swap_tensors": "_swap", "get_cpp_backtrace": "cpp_backtrace",
    "generate_methods_for_privateuse1_backend": "backend_registration",
    "rename_privateuse1_backend": "backend_registration",
}  # fmt: skip


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"taeda.utils.{name}")
    if name in _NAMES:
        return globals().setdefault(name, getattr(import_module(f"taeda.utils.{_NAMES[name]}"), name))
    raise AttributeError(f"module 'taeda.utils' has no attribute {name!r}")


def set_module(obj: object, mod: str) -> None:
    """Set `obj.__module__`."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __dir__() -> list[str]:
    return sorted({*(name for name in _MODULES if not name.startswith("_")), "set_module", "swap_tensors"})
