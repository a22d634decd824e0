"""Channels in another order."""

from __future__ import annotations

from taeda_nn import functional as F
from taeda_nn._bind import Tensor
from taeda_nn.modules.module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """(N, C, ...) with the channels of ``groups`` groups dealt out in turn, as a pack of cards.

    Args:
        groups: Number of groups; it divides C.

    Source: Zhang et al., "ShuffleNet", 2017.
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
