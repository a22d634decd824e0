"""Embedding: a learned table of vectors."""

from __future__ import annotations

from typing import Any

from taeda_nn import functional as F
from taeda_nn import init
from taeda_nn._bind import Tensor, no_grad, tensor
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter

__all__ = [
    "Embedding",
]


class Embedding(Module):
    """A table of vectors, looked up by index.

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Size of each row.
        padding_idx: Row that starts as zeros and gets no gradient.
        max_norm: Rows used whose norm is greater are rescaled first.
        norm_type: The p of that norm.
        scale_grad_by_freq: Whether a row's gradient is divided by how often it was used.
        sparse: Not supported yet.

    Attributes:
        weight: (num_embeddings, embedding_dim), standard normal.

    Example:
        >>> nn.Embedding(10, 3)(torch.tensor([[1, 2], [4, 3]])).shape
        Size([2, 2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"Embedding: padding_idx {padding_idx} is out of range for {num_embeddings} rows"
                )
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            made = tensor.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(made, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != shape:
                raise ValueError(f"Embedding: weight must have shape {shape}, got {tuple(_weight.shape)}")
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, usual in (
            ("padding_idx", None),
            ("max_norm", None),
            ("norm_type", 2.0),
            ("scale_grad_by_freq", False),
            ("sparse", False),
        ):
            value = getattr(self, name)
            if value != usual:
                text += f", {name}={value}"
        return text

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, **options: Any
    ) -> Embedding:
        """Makes a layer from a table (rows, features), not learned unless ``freeze`` is False."""
        if embeddings.dim() != 2:
            raise ValueError(
                f"Embedding.from_pretrained: expected 2 dimensions, got shape {tuple(embeddings.shape)}"
            )
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, _weight=embeddings, _freeze=freeze, **options)
