"""Dropout and its relatives."""

from __future__ import annotations

import warnings

from taeda_nn._bind import Tensor, op

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]

_dropout, _dropout_in_place = op("dropout"), op("dropout_")
_feature_dropout, _feature_dropout_in_place = op("feature_dropout"), op("feature_dropout_")
_alpha_dropout, _alpha_dropout_in_place = op("alpha_dropout"), op("alpha_dropout_")
_feature_alpha_dropout, _feature_alpha_dropout_in_place = (
    op("feature_alpha_dropout"),
    op("feature_alpha_dropout_"),
)


def _check(name: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}: dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """While training, zeroes each element with probability ``p`` and divides the others by ``1 - p``.

    Example:
        >>> F.dropout(torch.ones(3), 0.5, training=False)
        tensor([1., 1., 1.])

    Source: Srivastava et al., "Dropout", 2014.
    """
    if not 0.0 <= p <= 1.0:
        _check("dropout", p)
    if not training or p == 0.0:
        return input
    return (_dropout_in_place if inplace else _dropout)(input, p, True)


def _channelwise(name: str, input: Tensor, p: float, training: bool, inplace: bool, batched: int) -> Tensor:
    """Dropout of dimension 1, of dimension 0 below ``batched`` dimensions, where that of the batch is missing."""
    _check(name, p)
    if not training or p == 0:
        return input
    drop = _feature_dropout_in_place if inplace else _feature_dropout
    if input.dim() >= batched:
        return drop(input, p, True)
    result = drop(input.unsqueeze(0), p, True)
    return input if inplace else result.squeeze(0)


def _unusual(name: str, input: Tensor, expected: str) -> None:
    warnings.warn(f"{name}: input has shape {tuple(input.shape)}, expected {expected}", stacklevel=3)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d: input must have 2 or 3 dimensions, got shape {tuple(input.shape)}")
    return _channelwise("dropout1d", input, p, training, inplace, 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels: dimension 1 of (N, C, H, W); of (N, C, L) and single elements of (N, C) too."""
    if input.dim() == 3:
        warnings.warn(
            f"dropout2d: received a 3-D input of shape {tuple(input.shape)}, whose channels are taken to be dimension "
            "1, as dropout1d does; (C, H, W) needs a dimension of batches",
            stacklevel=2,
        )
    elif input.dim() != 4:
        _unusual("dropout2d", input, "(N, C, H, W)")
    return _channelwise("dropout2d", input, p, training, inplace, 0)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    if input.dim() not in (4, 5):
        _unusual("dropout3d", input, "(N, C, D, H, W) or (C, D, H, W)")
    return _channelwise("dropout3d", input, p, training, inplace, 5)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for SELU networks: keeps mean 0 and variance 1.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    return (_alpha_dropout_in_place if inplace else _alpha_dropout)(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """``alpha_dropout`` of whole channels."""
    return (_feature_alpha_dropout_in_place if inplace else _feature_alpha_dropout)(input, p, training)
