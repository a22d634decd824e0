"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from taeda_nn._bind import Tensor, tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Returns all parameters, flattened, as one vector.

    Example:
        >>> nn.utils.parameters_to_vector(nn.Linear(2, 3).parameters()).shape
        Size([9])
    """
    return tensor.cat([param.reshape(-1) for param in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives parameters the values of a vector, in order; the vector's memory is shared.

    Raises:
        TypeError: ``vec`` is no Tensor.
        ValueError: It has fewer or more elements than the parameters.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), layer.parameters())
        >>> layer.bias.tolist()
        [3.0]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: expected a Tensor, got {type(vec).__name__}")
    parameters = list(parameters)
    needed = sum(param.numel() for param in parameters)
    if needed != vec.numel():
        raise ValueError(
            f"vector_to_parameters: the parameters have {needed} elements, the vector {vec.numel()}"
        )
    at = 0
    for param in parameters:
        n = param.numel()
        param.data = vec[at : at + n].view(param.shape).data
        at += n
