"""Operators of one's own that have several overloads, "pkg::scale.Tensor" and "pkg::scale.Scalar", under one name."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core.library._table import Operator, Overload


class Packet:
    """All overloads of an operator, as attributes: a call goes to the first, in order of definition, that takes it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._forms: dict[str, Operator] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        errors: list[TypeError] = []
        for operator in self._forms.values():
            try:
                return operator(*args, **kwargs)
            except TypeError as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        listed = "; ".join(map(str, errors))
        raise TypeError(f"{self._name}: no overload takes these arguments: {listed}") from errors[0]

    @property
    def __name__(self) -> str:
        return self._name.rpartition("::")[2]

    def name(self) -> str:
        """ "package::operator" """
        return self._name

    def overloads(self) -> list[str]:
        """Names of its overloads, as attributes."""
        return list(self._forms)

    def put(self, overload: str, operator: Operator) -> None:
        """Add an overload; "default" has no name of its own."""
        self._forms[overload] = operator

    def drop(self, overload: str) -> bool:
        """Take one away; whether that was the last."""
        self._forms.pop(overload, None)
        return not self._forms

    def __getattr__(self, name: str) -> Overload:
        found = self.__dict__.get("_forms", {}).get(name)
        if found is None:
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        return found.default

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._forms]

    def __reduce__(self) -> tuple:
        return _find, (self._name,)

    def __repr__(self) -> str:
        return f"<operator {self._name}: {', '.join(self._forms)}>"

    def __str__(self) -> str:
        return self._name.replace("::", ".")


def _find(name: str) -> Any:
    package, _, short = name.partition("::")
    return getattr(getattr(_C.ops, package), short)


def put(space: Any, package: str, name: str, target: Any) -> None:
    """Let the module `space` of a package's operators have this one; `name` is "scale" or "scale.Tensor"."""
    base, _, overload = name.partition(".")
    known = vars(space).get(base)
    if not overload and not isinstance(known, Packet):
        setattr(space, base, target)
        return
    if not isinstance(known, Packet):
        packet = Packet(f"{package}::{base}")
        if isinstance(known, Operator):
            packet.put("default", known)
        setattr(space, base, packet)
        known = packet
    known.put(overload or "default", target)


def drop(space: Any, name: str) -> None:
    """Take it away again."""
    base, _, overload = name.partition(".")
    known = vars(space).get(base)
    if not isinstance(known, Packet) or known.drop(overload or "default"):
        vars(space).pop(base, None)
