"""Compilers that take graphs as they are."""

from __future__ import annotations

from typing import Any

from taeda._dynamo._explain import ExplainOutput, ExplainWithBackend, explain

__all__ = [
    "ExplainOutput",
    "ExplainWithBackend",
    "aot_eager",
    "boxed_nop",
    "eager",
    "eager_noexcept",
    "explain",
    "get_nop_func",
    "torchscript",
]


def eager(gm: Any, fake_tensor_inputs: Any, **_: Any) -> Any:
    """The graph's program."""
    return gm.forward


eager_noexcept = aot_eager = torchscript = eager


def boxed_nop(fx_g: Any, example_inputs: Any) -> Any:
    """The graph's program as a function of the list of its inputs."""
    from taeda._functorch.aot_autograd import make_boxed_func

    return make_boxed_func(fx_g)


def get_nop_func() -> Any:
    """What leaves a graph as it is."""
    return eager
