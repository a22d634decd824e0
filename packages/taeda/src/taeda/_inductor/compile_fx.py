"""Graphs that are handed to a code generator, which is not there: they run as they are."""

from __future__ import annotations

from typing import Any

__all__ = ["compile_fx", "compile_fx_inner"]


def compile_fx(model_: Any, example_inputs_: Any, inner_compile: Any = None, **_: Any) -> Any:
    """A graph's program, or what a function of the program's own makes of the graph.

    Args:
        model_: A graph module. example_inputs_: Its inputs.
        inner_compile: Takes both and gives a function.

    Example:
        >>> from taeda._inductor.compile_fx import compile_fx
        >>> taeda.compile(taeda.relu, backend=compile_fx)(taeda.ones(1))
        tensor([1.])
    """
    if inner_compile is not None and inner_compile is not compile_fx_inner:
        from taeda._functorch.aot_autograd import aot_module_simplified

        return aot_module_simplified(model_, example_inputs_, inner_compile)
    return model_.forward


def compile_fx_inner(gm: Any, example_inputs: Any, **_: Any) -> Any:
    """A graph's program."""
    return gm.forward
