"""Runs passes one after another."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from taeda.fx.graph_module import GraphModule
from taeda.fx.passes.infra.pass_base import PassResult
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PassManager", "inplace_wrapper", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that changes a graph module in place as one that gives a PassResult."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def wrapped(gm: Any) -> PassResult:
        result = fn(gm)
        if isinstance(result, PassResult):
            return result
        return PassResult(result if isinstance(result, nn.Module) else gm, True)

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


inplace_wrapper = pass_result_wrapper


def this_before_that_pass_constraint(
    this: Callable[..., Any], that: Callable[..., Any]
) -> Callable[..., bool]:
    """A condition on the order of two passes."""

    def holds(a: Any, b: Any) -> bool:
        return a != that or b != this

    return holds


class PassManager:
    """Runs passes in an order that meets all conditions.

    Args:
        passes: Functions that give a `PassResult`.
        constraints: Each says of two passes whether the first may stand before the second.
        steps: How often all passes run at most; they stop when none has changed anything.
        run_checks_after_each_pass: Call `check` after every pass.
        suppress_check_failures: Accepted.
    """

    def __init__(
        self,
        passes: list[Any] | None = None,
        constraints: list[Any] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes, self.constraints = list(passes or []), list(constraints or [])
        self.steps = 1 if steps is None else steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Callable[..., Any]) -> None:
        """Add a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[..., Any]) -> None:
        """Add a condition."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raise RuntimeError where the order of the passes breaks a condition."""
        for constraint in self.constraints:
            for index, first in enumerate(self.passes):
                for later in self.passes[index + 1 :]:
                    if not constraint(first, later):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {later} before {first}"
                        )
        self._validated = True

    def solve_constraints(self) -> None:
        """Order the passes so that all conditions hold.

        Raises:
            RuntimeError: No order does.
        """
        waiting, ordered = list(self.passes), []
        while waiting:
            ready = next(
                (
                    one
                    for one in waiting
                    if all(c(one, other) for c in self.constraints for other in waiting if other is not one)
                ),
                None,
            )
            if ready is None:
                raise RuntimeError(f"Circular dependency detected within the following passes: {waiting}")
            waiting.remove(ready)
            ordered.append(ready)
        self.passes = ordered
        self._validated = True

    def add_checks(self, check: Callable[..., Any]) -> None:
        """Let a function look at the module after every pass."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[method-assign]

    def check(self, module: Any) -> None:
        """Asked after every pass; derived classes may raise."""

    def __call__(self, module: Any) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            again = False
            for one in self.passes:
                result = one(module)
                if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
                    raise TypeError(
                        f"The result of the pass {getattr(one, '__name__', one)} should be type PassResult. Please "
                        "wrap it with pass_result_wrapper()"
                    )
                module = result.graph_module
                again = again or result.modified
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            changed = changed or again
            if not again:
                break
        return PassResult(module, changed)
