"""Functions of parts, and plain tensors beside tensors that lie over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from taeda import _absent
from taeda.distributed.tensor import _api

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]

context_parallel = _absent.function(
    "taeda.distributed.tensor.experimental.context_parallel", "attention is computed from whole sequences"
)
register_sharding = _absent.function(
    "taeda.distributed.tensor.experimental.register_sharding", "operators without a rule take whole tensors"
)


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Context in which plain tensors beside a DTensor count as had by all processes."""
    before, _api._may_mix[0] = _api._may_mix[0], True
    try:
        yield
    finally:
        _api._may_mix[0] = before


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: Any = None,
    in_grad_placements: Any = None,
    device_mesh: Any = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable[..., Any]:
    """A function of parts as one of DTensors.

    Args:
        func: Gets the parts of this process, and gives parts.
        out_placements: How the results lie; None for what is no DTensor.
        in_placements: How each argument must lie; None for any way.
        in_grad_placements: How the gradients of the parts lie.
        device_mesh: The mesh of the results; None for that of the arguments.
        redistribute_inputs: Bring arguments to lie as they must, instead of raising.

    Raises:
        ValueError: An argument lies in another way.
    """
    if func is None:
        return lambda function: local_map(
            function, out_placements, in_placements, in_grad_placements, device_mesh,
            redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    def call(*args: Any, **kwargs: Any) -> Any:
        mesh, parts = device_mesh, []
        for at, value in enumerate(args):
            if not isinstance(value, _api.DTensor):
                parts.append(value)
                continue
            mesh = mesh or value.device_mesh
            wanted = None if in_placements is None else in_placements[at]
            if wanted is not None and tuple(wanted) != value.placements:
                if not redistribute_inputs:
                    raise ValueError(
                        f"arg {value} in local_map has a mismatched placements: arg placements is {value.placements} "
                        f"but the input placements is {tuple(wanted)}! If redistribute_inputs is wanted, set "
                        "redistribute_inputs=True to local_map."
                    )
                value = value.redistribute(placements=wanted)
            gradients = None if in_grad_placements is None else in_grad_placements[at]
            parts.append(value.to_local(grad_placements=gradients))
        made = func(*parts, **kwargs)
        if mesh is None:
            return made
        if not isinstance(made, (tuple, list)):
            return _api.DTensor.from_local(made, mesh, _of_one(out_placements, mesh))
        return tuple(
            value if place is None else _api.DTensor.from_local(value, mesh, place)
            for value, place in zip(made, out_placements, strict=True)
        )

    return call


def _of_one(places: Any, mesh: Any) -> Any:
    """The placements of the only result, given alone or in a tuple."""
    return places[0] if places and isinstance(places[0], (tuple, list)) else places
