"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from taeda_nn._bind import Tensor, tensor


def _check_param_device(param: Tensor, old_param_device: int | None) -> int:
    """The number of the parameter's device, -1 for the cpu; TypeError where those before it lie on another one.

    Programs that write vectors of their own import it.
    """
    device = -1 if param.device.type == "cpu" else param.get_device()
    if old_param_device is not None and device != old_param_device:
        raise TypeError(
            "parameters: Found two parameters on different devices, this is currently not supported: "
            f"found {device} after {old_param_device} (-1: the cpu)"
        )
    return device


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
