"""Objects that have a state of their own."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """An object whose state is saved and loaded in its place."""

    def state_dict(self) -> dict[str, Any]:
        """What is saved."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what was saved."""


StatefulT = TypeVar("StatefulT", bound=Stateful)
