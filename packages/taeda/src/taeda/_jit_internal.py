"""Names that programs import from the home of marks for a script compiler, which is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

from taeda.futures import Future
from taeda.jit import (
    export,
    ignore,
    interface,
    is_scripting,
    unused,
)
from taeda.jit.annotations import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    Dict,
    List,
    Optional,
    Tuple,
    Union,
)

__all__ = [
    "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "Final", "Future", "List", "Optional",
    "Tuple", "Union", "boolean_dispatch", "boolean_dispatched", "export", "ignore", "interface", "is_scripting",
    "unused",
]  # fmt: skip


#: What `boolean_dispatch` gave, and of what.
boolean_dispatched: WeakKeyDictionary[Callable[..., Any], dict[str, Any]] = WeakKeyDictionary()


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str | None = None,
    func_name: str | None = None,
) -> Callable[..., Any]:
    """A function that calls one of two others, as one of its arguments says.

    Args:
        arg_name: Name of that argument.
        arg_index: Its place.
        default: Its value where it is not given.
        if_true: What is called where it is true.
        if_false: What is called where it is not.

    Example:
        >>> pick = boolean_dispatch("sure", 1, False, lambda x, sure=True: x + 1, lambda x, sure=False: x)
        >>> pick(1), pick(1, sure=True)
        (1, 2)
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        chosen = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    call.__name__ = func_name or call.__name__
    call.__module__ = module_name or call.__module__
    call.__doc__ = if_true.__doc__ or if_false.__doc__
    boolean_dispatched[call] = {
        "if_true": if_true, "if_false": if_false, "index": arg_index, "default": default, "arg_name": arg_name,
    }  # fmt: skip
    return call


def _qualified_name(obj: Any, mangle_name: bool = True) -> str:
    """The name of a class or function in a script archive: that of its module, below `__torch__`.

    Raises:
        RuntimeError: It has no name, or is of no module.

    Example:
        >>> _qualified_name(collections.OrderedDict)
        '__torch__.collections.OrderedDict'
    """
    if (given := getattr(obj, "_jit_override_qualname", None)) is not None:
        return given
    name, home = getattr(obj, "__name__", None), getattr(obj, "__module__", None)
    if not isinstance(name, str) or not isinstance(home, str):
        raise RuntimeError(
            f"_qualified_name: expected a class or function of a module, found {type(obj).__name__}"
        )
    if mangle_name:
        home = "__torch__" if home == "__main__" else f"__torch__.{home}"
    return f"{home}.{name.replace('<lambda>', '_lambda')}"


def _overload(func: Any) -> Any:
    """The function: which of several signatures a script takes, its values say."""
    return func


_overload_method = _overload


def _copy_to_script_wrapper(fn: Any) -> Any:
    """The function: nothing is compiled."""
    return fn
