"""Modules that find out sizes of their inputs in the first call."""

from __future__ import annotations

import threading
from typing import Any

from taeda_nn.parameter import is_lazy
from taeda_registry.forks import held_at_fork

__all__ = ["LazyModuleMixin"]

#: Held while a module initialises itself: several threads may call it for the first time at once.
_first = held_at_fork(threading.RLock())


class LazyModuleMixin:
    """Mixed into a module class, lets it be made without sizes that its first input tells.

    The module holds `UninitializedParameter` and `UninitializedBuffer`. Before the first call of ``forward`` its
    ``initialize_parameters`` is called with forward's arguments; then it becomes an instance of ``cls_to_become``.
    A state may be loaded before: lazy members take the shapes found there.

    Example:
        >>> net = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(2))
        >>> net(torch.ones(3, 5)).shape
        Size([3, 2])
    """

    # The class that an instance becomes once everything has a shape; None: it stays what it is.
    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        # Bound methods, as pickles of PyTorch's modules have them.
        self._load_hook = module._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = module.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives parameters and buffers their shapes, from the arguments of forward; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} defines no initialize_parameters")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of the module itself has no shape yet."""
        module: Any = self
        return any(is_lazy(value) for value in (*module._parameters.values(), *module._buffers.values()))

    def _lazy_load_hook(self, *state: Any) -> None:
        """Called before a state is loaded, for subclasses: loading itself gives lazy members their shapes."""

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        """Initialises the module before its first forward, and makes it an ordinary one."""
        with _first:
            if not hasattr(module, "_initialize_hook"):  # another thread was first
                return
            if isinstance(module, LazyModuleMixin):  # else Ctrl-C came when it had just become what it is
                _initialize(module, args, kwargs or {})
            for name in ("_initialize_hook", "_load_hook"):
                getattr(module, name).remove()
                delattr(module, name)


def _initialize(module: Any, args: Any, kwargs: Any) -> None:
    members = (*module._parameters.values(), *module._buffers.values())
    before = [(value, type(value), value.data) for value in members if is_lazy(value)]
    sizes = {name: value for name, value in module.__dict__.items() if isinstance(value, int)}
    try:
        module.initialize_parameters(*args, **kwargs)
    except BaseException:
        # As it was: a member with memory counts as initialised, whatever stands there.
        for value, kind, data in before:
            value.data = data
            value.__class__ = kind
        for name, size in sizes.items():
            setattr(module, name, size)
        raise
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become
