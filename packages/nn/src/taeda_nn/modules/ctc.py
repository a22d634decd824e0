"""The loss of sequences without alignment."""

from __future__ import annotations

from taeda_nn import functional as F
from taeda_nn._bind import Tensor
from taeda_nn.modules.loss import _Loss

__all__ = ["CTCLoss"]


class CTCLoss(_Loss):
    """Connectionist temporal classification; arguments of the call as ``functional.ctc_loss``.

    Args:
        blank: Class of the blank.
        reduction: 'mean' (losses over target lengths, then their mean), 'sum' or 'none'.
        zero_infinity: Whether infinite losses, of targets too long for their input, and their gradients become 0.

    Example:
        >>> probabilities = torch.randn(50, 16, 20).log_softmax(2)
        >>> targets = torch.randint(1, 20, (16, 30))
        >>> nn.CTCLoss()(probabilities, targets, (50,) * 16, (25,) * 16).shape
        Size([])

    Source: Graves et al., "Connectionist Temporal Classification", 2006.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(  # type: ignore[override]
        self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
