"""Names of what is not there: they can be imported and asked about, and using them says so."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


def is_available() -> bool:
    """False: what is asked is not there."""
    return False


def function(name: str, reason: str) -> Callable[..., Any]:
    """A function whose call raises NotImplementedError; asked whether it is available, what is not there says no.

    Args:
        name: Its dotted name, as programs call it.
        reason: What is missing, and what to do instead.
    """

    def absent(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is not there: {reason}")

    if name.endswith(".is_available"):
        return is_available
    absent.__name__ = name.rpartition(".")[2]
    absent.__qualname__ = absent.__name__
    absent.__module__ = name.rpartition(".")[0]
    absent.__doc__ = f"Raises NotImplementedError: {reason}."
    return absent


def cls(name: str, reason: str, base: type = object) -> type:
    """A class without instances: `isinstance` and derived classes work, making one raises NotImplementedError."""
    home, _, short = name.rpartition(".")

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{name} is not there: {reason}")

    text = f"Cannot be made: {reason}. Nothing is an instance of it."
    return type(short, (base,), {"__init__": __init__, "__module__": home, "__doc__": text})


def functions(home: str, names: str, reason: str) -> dict[str, Callable[..., Any]]:
    """Several functions of one module, by name."""
    return {name: function(f"{home}.{name}", reason) for name in names.split()}
