"""What a recording must not change: it runs a program once that nobody has called."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from taeda.utils import _pytree
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def left_alone(program: Any, inputs: Any = ()) -> Iterator[None]:
    """Context after which a program, the tensors that it is given and random numbers are what they were.

    Args:
        program: A module, whose buffers and attributes are meant; of others nothing is known.
        inputs: Tensors among nested lists, tuples and dictionaries.
    """
    modules = program.modules() if isinstance(program, nn.Module) else ()
    parts = [part for part in modules if not _is_unset(part)]
    attributes = [(part, dict(part.__dict__), dict(part._buffers)) for part in parts]
    held = [value for _, _, buffers in attributes for value in buffers.values()] + _pytree.tree_leaves(inputs)
    before = [
        (value, None if value.is_inference() else value._version, value.detach().clone())
        for value in held
        if isinstance(value, tensor.Tensor) and value.layout is tensor.strided
    ]
    try:
        with tensor.random.fork_rng(devices=[]):
            yield
    finally:
        for part, own, buffers in attributes:
            part.__dict__.update(own)
            part._buffers.update(buffers)
        for value, version, elements in before:
            if version is None:  # nobody counts what is written to it
                with tensor.inference_mode():
                    value.copy_(elements)
            elif value._version != version:
                with tensor.no_grad():
                    value.copy_(elements)


def _is_unset(module: nn.Module) -> bool:
    """Whether its first inputs still have to tell how large its parameters are."""
    return isinstance(module, nn.modules.lazy.LazyModuleMixin) and module.has_uninitialized_params()
