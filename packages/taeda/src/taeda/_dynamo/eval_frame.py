"""The class of modules that programs have compiled, and what they ask the compiler."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import nn

__all__ = ["OptimizedModule", "is_dynamo_supported"]

# What stands in the module itself; every other attribute is the one of the module within.
_OWN = frozenset({"_orig_mod", "dynamo_ctx", "forward", "get_compiler_config", "_torchdynamo_orig_callable"})


class OptimizedModule(nn.Module):
    """What compiling a module gives: a module that calls it, with the same attributes.

    Its parameters are those of the module within, under names that begin with ``_orig_mod.``.

    Args:
        mod: The module within.
        dynamo_ctx: What calls it through graphs, where a compiler of the program's own was given.

    Example:
        >>> list(taeda.compile(nn.Linear(1, 1)).state_dict())
        ['_orig_mod.weight', '_orig_mod.bias']
    """

    _orig_mod: nn.Module

    def __init__(self, mod: nn.Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._orig_mod = mod
        self.dynamo_ctx = dynamo_ctx
        self._torchdynamo_orig_callable = mod.forward

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module within computes, its hooks included."""
        call = self.dynamo_ctx if callable(self.dynamo_ctx) else _within(self)
        return call(*args, **kwargs)

    @property
    def training(self) -> bool:
        """Whether the module within is in training."""
        return _within(self).training

    @training.setter
    def training(self, mode: bool) -> None:
        if "_orig_mod" in vars(self):  # before, the constructor sets what a module begins with
            _within(self).training = mode

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(name) if name in _OWN else getattr(_within(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN or hasattr(type(self), name):
            super().__setattr__(name, value)
        else:
            setattr(_within(self), name, value)

    def __delattr__(self, name: str) -> None:
        if name in _OWN or hasattr(type(self), name):
            super().__delattr__(name)
        else:
            delattr(_within(self), name)

    def __len__(self) -> int:
        return len(_within(self))  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return True

    def __dir__(self) -> list[str]:
        return sorted({*dir(_within(self)), *super().__dir__()})

    def __reduce__(self) -> tuple[Any, ...]:
        if callable(self.dynamo_ctx):
            return _again, (_within(self), self.dynamo_ctx.backend, self.dynamo_ctx.fullgraph)
        return type(self), (_within(self), self.dynamo_ctx)


def _again(module: Any, backend: Any, fullgraph: bool) -> Any:
    from taeda.compiler import compile

    return compile(module, backend=backend, fullgraph=fullgraph)


def _within(module: OptimizedModule) -> Any:
    return vars(module)["_orig_mod"]


def is_dynamo_supported() -> bool:
    """Whether programs are compiled: False."""
    return False
