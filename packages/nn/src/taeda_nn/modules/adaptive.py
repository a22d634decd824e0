"""Softmax over many classes, the frequent ones first."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from taeda_nn import functional as F
from taeda_nn._bind import Tensor, tensor
from taeda_nn.modules.container import ModuleList, Sequential
from taeda_nn.modules.linear import Linear
from taeda_nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over classes in clusters: a head of frequent classes and of clusters, a small tail for each.

    Args:
        in_features: Features of the input.
        n_classes: Number of classes, the frequent ones first.
        cutoffs: Where the clusters begin.
        div_value: How much smaller each cluster's space of features is than the one before.
        head_bias: Whether the head has a shift.

    Attributes:
        head: The map to frequent classes and clusters.
        tail: For each cluster a map to its space and one to its classes.

    Raises:
        ValueError: Cutoffs that do not rise, or lie outside of 1 to ``n_classes - 1``.

    Example:
        >>> output, loss = nn.AdaptiveLogSoftmaxWithLoss(16, 100, [10, 50])(torch.randn(8, 16), torch.arange(8))
        >>> output.shape, loss.shape
        (Size([8]), Size([]))

    Source: Grave et al., "Efficient softmax approximation for GPUs", 2016.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        like = {"device": device, "dtype": dtype}
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of length larger than 0"
            )
        whole = all(int(c) == c for c in cutoffs)
        if not whole or cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive integers sorted in an "
                f"increasing order, where each value is between 1 and n_classes-1 ({n_classes - 1}), found {cutoffs}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **like)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            space = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, space, bias=False, **like), Linear(space, classes, bias=False, **like)
                )
            )

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        self.head.reset_parameters()
        for inner, outer in self.tail:
            inner.reset_parameters()
            outer.reset_parameters()

    def _check_target(self, input: Tensor, target: Tensor) -> None:
        if target.dim() not in (0, 1):
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: target should be 0-d or 1-d, found shape {tuple(target.shape)}"
            )
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: input should be {target.dim() + 1}-d for a target of shape "
                f"{tuple(target.shape)}, found shape {tuple(input.shape)}"
            )
        if target.dim() == 1 and input.shape[0] != target.shape[0]:
            raise RuntimeError(
                "AdaptiveLogSoftmaxWithLoss: input and target should have the same size in the batch dimension, found "
                f"{input.shape[0]} and {target.shape[0]}"
            )
        if target.numel():
            low, high = int(target.min()), int(target.max())
            if low < 0 or high >= self.n_classes:
                raise RuntimeError(
                    f"AdaptiveLogSoftmaxWithLoss: target values should be in [0, {self.n_classes - 1}], but values in "
                    f"range [{low}, {high}] were found"
                )

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """Returns the log-probability of every target, and minus their mean, as ``output`` and ``loss``.

        Args:
            input_: (N, in_features) or (in_features,).
            target_: (N,) or (), classes.
        """
        self._check_target(input_, target_)
        single = target_.dim() == 0
        input, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        head = F.log_softmax(self.head(input), 1)
        place = target.clamp(max=self.shortlist_size - 1)
        output = head.new_zeros(target.shape)
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            inside = (target >= low) & (target < high)
            rows = inside.nonzero().squeeze(1)
            if not rows.numel():
                continue
            place = tensor.where(inside, self.shortlist_size + i, place)
            tail = F.log_softmax(self.tail[i](input.index_select(0, rows)), 1)
            chosen = tail.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
            output = output.index_add(0, rows, chosen)
        output = output + head.gather(1, place.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, 1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[i](input), 1)
            parts.append(cluster + head[:, self.shortlist_size + i].unsqueeze(1))
        return tensor.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of every sample, (N,); tails are looked at only where the head names a cluster."""
        head = self.head(input)
        output = head.argmax(1)
        in_tail = output >= self.shortlist_size
        if not bool(in_tail.any()):
            return output
        rows = in_tail.nonzero().squeeze(1)
        found = self._get_full_log_prob(input.index_select(0, rows), head.index_select(0, rows)).argmax(1)
        return output.index_copy(0, rows, found)
