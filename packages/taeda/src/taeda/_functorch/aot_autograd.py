"""Graphs of functions for compilers of graphs: one of the forward computation, and one of the gradients.

Backends of `taeda.compile` get graphs of public functions; compilers that are given here get operators, as in PyTorch.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "aot_autograd", "aot_function", "aot_module", "aot_module_simplified", "compiled_function", "compiled_module",
    "default_decompositions",
    "default_partition", "get_aot_compilation_context", "get_aot_graph_name", "get_graph_being_compiled",
    "make_boxed_compiler", "make_boxed_func", "memory_efficient_fusion", "min_cut_rematerialization_partition", "nop",
    "print_compile", "ts_compile",
]  # fmt: skip

#: Operators that PyTorch takes apart; here none is.
default_decompositions: dict[Any, Any] = {}


def make_boxed_func(f: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """A function of the list of the arguments."""

    def boxed(args: list[Any]) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def make_boxed_compiler(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A compiler whose results take the list of their arguments."""

    @functools.wraps(compiler)
    def boxed(fx_g: Any, inps: Any) -> Any:
        return make_boxed_func(compiler(fx_g, inps))

    return boxed


def aot_autograd(
    *,
    fw_compiler: Callable[..., Any],
    bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Callable[..., Any] | None = None,
    decompositions: Any = None,
    **_: Any,
) -> Callable[..., Any]:
    """A backend of `taeda.compile` that calls compilers with graphs.

    Args:
        fw_compiler: Takes a graph module and the list of its inputs, and gives a function of these or, marked by
            `make_boxed_func`, of their list.
        bw_compiler: The same for the graph of the gradients; `fw_compiler` where it is None.
        partition_fn: See `aot_function`.
        decompositions: Functions that stand for operators, by overload. Further arguments are accepted.

    Example:
        >>> from taeda._dynamo.backends.common import aot_autograd
        >>> taeda.compile(taeda.relu, backend=aot_autograd(fw_compiler=lambda gm, inputs: gm))(taeda.ones(1))
        tensor([1.])
    """

    def backend(gm: Any, example_inputs: list[Any], **_: Any) -> Callable[..., Any]:
        return aot_function(gm, fw_compiler, bw_compiler, partition_fn, decompositions)

    return backend


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Callable[..., Any],
    bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Any = None,
    decompositions: Any = None,
    **_: Any,
) -> Callable[..., Any]:
    """A function that runs what compilers make of the graphs of `fn` and of its gradients.

    Args:
        fn: The function; a module's parameters and buffers are inputs of its graph.
        fw_compiler: See `aot_autograd`.
        bw_compiler: That of the gradients' graph; `fw_compiler` where it is None.
        partition_fn: Takes a graph module of both parts, the lists of their inputs, and by name how many results
            are forward; gives the graph modules of each part. `default_partition` where it is None.
        decompositions: Functions that stand for operators, by overload.

    Example:
        >>> from taeda._functorch.aot_autograd import aot_function
        >>> def show(gm, inputs):
        ...     print([node.name for node in gm.graph.nodes])
        ...     return gm
        >>> aot_function(lambda x: x.sin(), show)(taeda.ones(1, requires_grad=True)).backward()
        ['primals_1', 'sin', 'output']
        ['primals_1', 'tangents_1', 'cos', 'mul', 'output']
    """
    from taeda._functorch._joint import JointFunction

    if not isinstance(fn, nn.Module):
        return JointFunction(fn, fw_compiler, bw_compiler, decompositions, partition_fn)

    def stateless(state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        from taeda.func import functional_call

        return functional_call(fn, state, args, kwargs)

    joint = JointFunction(stateless, fw_compiler, bw_compiler, decompositions, partition_fn)
    return lambda *args, **kwargs: joint(
        {**dict(fn.named_parameters()), **dict(fn.named_buffers())}, args, kwargs
    )


class _Compiled(nn.Module):
    def __init__(self, mod: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.orig_module = mod
        object.__setattr__(self, "_call", call)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)  # type: ignore[operator]


def aot_module(mod: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """A module that runs what a compiler makes of the graph of `mod`, which is its member `orig_module`."""
    return _Compiled(mod, aot_function(mod, *args, **kwargs))


compiled_function, compiled_module = aot_function, aot_module


def aot_module_simplified(
    mod: nn.Module, args: Any, fw_compiler: Callable[..., Any], bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Any = None, decompositions: Any = None, **_: Any,
) -> Callable[..., Any]:  # fmt: skip
    """What compilers make of a graph module whose inputs are `args`: a function of these; see `aot_function`."""
    return aot_function(mod, fw_compiler, bw_compiler, partition_fn, decompositions)


@make_boxed_compiler
def nop(fx_g: Any, inps: Any) -> Any:
    """The graph as it is."""
    return fx_g


@make_boxed_compiler
def print_compile(fx_g: Any, inps: Any) -> Any:
    """Print the graph's program and take it as it is."""
    print(fx_g.code)
    return fx_g


ts_compile = nop


def default_partition(joint_module: Any, _joint_inputs: Any, *, num_fwd_outputs: int, **_: Any) -> Any:
    """The forward and the backward part of a graph module of both, as `partition_fn` gives them.

    The forward part gives its results and what the backward part reads of it; that takes this and the tangents.

    Args:
        joint_module: Gives `num_fwd_outputs` results and the gradients of its inputs, of which those of the backward
            part are called tangents.
    """
    from taeda._functorch._joint import parted

    return parted(joint_module, num_fwd_outputs)


#: Here nothing is computed twice to save memory.
min_cut_rematerialization_partition = default_partition


def memory_efficient_fusion(fn: Any, **_: Any) -> Any:
    """The function or module through a graph that runs as it is."""
    return (aot_module if isinstance(fn, nn.Module) else aot_function)(fn, nop)


def get_graph_being_compiled() -> str:
    """The name of the graph that is being compiled."""
    return "model"


get_aot_graph_name = get_graph_being_compiled


def get_aot_compilation_context() -> tuple[list[str], Any, int]:
    """Names, settings and number of the graph that is being compiled."""
    return ["model"], None, 0


def __getattr__(name: str) -> Any:
    if name in ("_is_primal", "_is_tangent"):
        from taeda._functorch import _joint

        return getattr(_joint, name[1:])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
