"""A provider of slot ``nn`` in one file that hands on everything of the first-party one, and adds a layer."""

from typing import Any

import taeda_nn

__taeda_interface__ = {"nn": "1.0"}


class Doubling(taeda_nn.Module):
    """Twice its argument."""

    def forward(self, x: Any) -> Any:
        """The result."""
        return x * 2


def __getattr__(name: str) -> Any:
    return getattr(taeda_nn, name)
