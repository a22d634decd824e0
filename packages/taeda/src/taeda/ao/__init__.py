"""Quantizing and pruning models, and the layers of quantized ones."""

from importlib import import_module

__all__ = ["nn", "pruning", "quantization"]


def __getattr__(name: str) -> object:
    # Not at the top: programs import what is below it first, also in several threads, which would wait for one another.
    if name in __all__:
        return import_module(f"taeda.ao.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
