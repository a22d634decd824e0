"""L-BFGS (Nocedal, 1980), with a line search for the strong Wolfe conditions (Nocedal and Wright, 2006, chapter 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from taeda_optim.optimizer import Optimizer, ParamsT, check_rate
from taeda_registry.slots import tensor

Evaluate = Callable[[float], tuple[float, Any]]


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last changes of gradients; each step evaluates the function several times.

    Args:
        params: see `Optimizer`; one group.
        lr: length of a step without line search, first trial with one.
        max_iter: iterations of one ``step``.
        max_eval: evaluations of one ``step``, by default 1.25 times ``max_iter``.
        tolerance_grad: stop where no part of the gradient is greater.
        tolerance_change: stop where parameters, or the loss, change less.
        history_size: changes that are kept.
        line_search_fn: None, or 'strong_wolfe'.

    Raises:
        ValueError: several groups, or a negative rate.

    Example:
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = loss_of(model(x))
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_rate("LBFGS", lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        options = {"lr": lr, "max_iter": max_iter, "max_eval": max_eval, "tolerance_grad": tolerance_grad}
        options |= {"tolerance_change": tolerance_change, "history_size": history_size}
        super().__init__(params, {**options, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    # The parameters as one real vector

    def _numel(self) -> int:
        return sum((2 if p.is_complex() else 1) * p.numel() for p in self._params)

    def _gather_flat_grad(self) -> Any:
        parts = []
        for param in self._params:
            grad = tensor.zeros_like(param) if param.grad is None else param.grad
            parts.append((tensor.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        return tensor.cat(parts)

    def _add_grad(self, step_size: float, direction: Any) -> None:
        """Moves the parameters along a vector."""
        at = 0
        for param in self._params:
            real = tensor.view_as_real(param) if param.is_complex() else param
            count = real.numel()
            real.add_(direction[at : at + count].view_as(real), alpha=step_size)
            at += count

    def _clone_param(self) -> list[Any]:
        return [param.clone() for param in self._params]

    def _set_param(self, params_data: list[Any]) -> None:
        for param, value in zip(self._params, params_data, strict=True):
            param.copy_(value)

    def _directional_evaluate(
        self, closure: Callable[[], Any], x: list[Any], t: float, d: Any
    ) -> tuple[float, Any]:
        """Loss and gradient at ``x + t * d``; the parameters are back at ``x`` afterwards."""
        self._add_grad(t, d)
        loss = float(closure())
        gradient = self._gather_flat_grad()
        self._set_param(x)
        return loss, gradient

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Several iterations.

        Args:
            closure: computes the loss and its gradients anew, and returns the loss.

        Returns:
            The loss at the beginning.
        """
        with tensor.no_grad():
            return self._step(_recording(closure))

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, search = float(group["lr"]), group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        # The state belongs to all parameters; it stands under the first.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        gradient = self._gather_flat_grad()
        if bool(gradient.abs().max() <= group["tolerance_grad"]):
            return first_loss
        memory = _Memory(state, group["history_size"])
        direction, t = state.get("d"), state.get("t")
        iteration = 0
        while iteration < group["max_iter"]:
            iteration += 1
            state["n_iter"] += 1
            direction = memory.direction(gradient, direction, t, first=state["n_iter"] == 1)
            memory.previous, before = gradient.clone(), loss
            slope = float(gradient.dot(direction))
            t = lr
            if state["n_iter"] == 1:
                t = lr / max(1.0, float(gradient.abs().sum()))
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if search is not None:
                start = self._clone_param()
                loss, gradient, t, used = strong_wolfe(
                    lambda length, x=start, d=direction: self._directional_evaluate(closure, x, length, d),
                    t,
                    direction,
                    loss,
                    gradient,
                    slope,
                    max_ls=group["max_eval"] - evaluations,
                )
                self._add_grad(t, direction)
            else:
                self._add_grad(t, direction)
                if iteration != group["max_iter"]:
                    loss = float(closure())
                    gradient = self._gather_flat_grad()
                    used = 1
            done = bool(gradient.abs().max() <= group["tolerance_grad"])
            evaluations += used
            state["func_evals"] += used
            if iteration == group["max_iter"] or evaluations >= group["max_eval"] or done:
                break
            if bool((direction * t).abs().max() <= group["tolerance_change"]):
                break
            if abs(loss - before) < group["tolerance_change"]:
                break
        memory.store(direction, t, before)
        return first_loss


def _recording(closure: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with tensor.enable_grad():
            return closure()

    return run


class _Memory:
    """The last changes of parameters and gradients, which stand for the inverse of the Hessian."""

    def __init__(self, state: dict[str, Any], size: int) -> None:
        self.state, self.size = state, size
        self.changes: list[Any] = state.get("old_dirs") or []  # of the gradient
        self.steps: list[Any] = state.get("old_stps") or []
        self.ro: list[Any] = state.get("ro") or []
        self.scale: Any = state.get("H_diag", 1)
        self.previous: Any = state.get("prev_flat_grad")

    def direction(self, gradient: Any, last: Any, t: Any, first: bool) -> Any:
        """Minus the inverse Hessian times the gradient."""
        if first:
            self.changes, self.steps, self.ro, self.scale = [], [], [], 1
            return gradient.neg()
        self._remember(gradient.sub(self.previous), last.mul(t))
        d = gradient.neg()
        alphas: list[Any] = [0.0] * len(self.changes)
        for i in reversed(range(len(self.changes))):
            alphas[i] = self.steps[i].dot(d) * self.ro[i]
            d.add_(self.changes[i] * -alphas[i])
        d = d.mul(self.scale)
        for i, change in enumerate(self.changes):
            d.add_(self.steps[i] * (alphas[i] - change.dot(d) * self.ro[i]))
        self.state["al"] = alphas + [None] * (self.size - len(alphas))  # as long as others' states have it
        return d

    def _remember(self, change: Any, step: Any) -> None:
        curvature = change.dot(step)
        if not bool(curvature > 1e-10):
            return
        if len(self.changes) == self.size:
            for listed in (self.changes, self.steps, self.ro):
                listed.pop(0)
        self.changes.append(change)
        self.steps.append(step)
        self.ro.append(1.0 / curvature)
        self.scale = curvature / change.dot(change)

    def store(self, direction: Any, t: Any, loss: float) -> None:
        self.state.update(
            d=direction,
            t=t,
            old_dirs=self.changes,
            old_stps=self.steps,
            ro=self.ro,
            H_diag=self.scale,
            prev_flat_grad=self.previous,
            prev_loss=loss,
        )


def cubic_minimum(
    x1: float,
    f1: float,
    g1: float,
    x2: float,
    f2: float,
    g2: float,
    bounds: tuple[float, float] | None = None,
) -> float:
    """Where the cubic through two points with two slopes is least, within bounds; else their middle."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    if x1 == x2:
        return (low + high) / 2
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    if g2 - g1 + (2 * d2 if x1 <= x2 else -2 * d2) == 0:
        return (low + high) / 2
    if x1 <= x2:
        place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        place = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(place, low), high)


#: The name by which libraries import it.
_cubic_interpolate = cubic_minimum


def _strong_wolfe(
    obj_func: Callable[[Any, float, Any], tuple[float, Any]],
    x: Any,
    t: float,
    d: Any,
    f: float,
    g: Any,
    gtd: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Any, float, int]:
    """`strong_wolfe` as libraries call it, of a function of the place, the length and the direction."""
    return strong_wolfe(
        lambda length: obj_func(x, length, d), float(t), d, f, g, float(gtd), c1, c2, tolerance_change, max_ls
    )


class _Point:
    """A step length, with the loss, the gradient and the slope there."""

    __slots__ = ("gradient", "loss", "slope", "t")

    def __init__(self, t: float, loss: float, gradient: Any, slope: float) -> None:
        self.t, self.loss, self.gradient, self.slope = t, loss, gradient, slope


def strong_wolfe(
    evaluate: Evaluate,
    t: float,
    d: Any,
    loss: float,
    gradient: Any,
    slope: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Any, float, int]:
    """A step along ``d`` that lowers the loss enough and flattens the slope enough.

    Args:
        evaluate: loss and gradient after a step of some length.
        t: first trial.
        d: the direction.
        loss, gradient, slope: where the search begins.
        c1, c2: of the two conditions.
        tolerance_change: least width of the interval searched.
        max_ls: most trials.

    Returns:
        Loss and gradient there, the length of the step, and the number of evaluations.
    """
    width = float(d.abs().max())
    start = _Point(0.0, loss, gradient.clone(), slope)

    def at(length: float) -> _Point:
        found, there = evaluate(length)
        return _Point(length, found, there.clone(), float(there.dot(d)))

    def too_high(point: _Point) -> bool:
        return point.loss > loss + c1 * point.t * slope

    def flat(point: _Point) -> bool:
        return abs(point.slope) <= -c2 * slope

    bracket, done, trials, used = _bracketed(at, too_high, flat, t, start, max_ls)
    low = 0 if bracket[0].loss <= bracket[-1].loss else 1
    stuck = False
    while not done and trials < max_ls:
        a, b = bracket
        if abs(b.t - a.t) * width < tolerance_change:
            break
        length = cubic_minimum(a.t, a.loss, a.slope, b.t, b.loss, b.slope)
        # A trial near an end twice in a row, or on it, is moved a tenth of the interval inwards.
        least, most = min(a.t, b.t), max(a.t, b.t)
        margin = 0.1 * (most - least)
        if min(most - length, length - least) < margin:
            if stuck or length >= most or length <= least:
                length = most - margin if abs(length - most) < abs(length - least) else least + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = at(length)
        used += 1
        trials += 1
        if too_high(point) or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        if flat(point):
            done = True
        elif point.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
    best = bracket[low if len(bracket) > 1 else 0]
    return best.loss, best.gradient, best.t, used


def _bracketed(
    at: Callable[[float], _Point],
    too_high: Callable[[_Point], bool],
    flat: Callable[[_Point], bool],
    t: float,
    start: _Point,
    max_ls: int,
) -> tuple[list[_Point], bool, int, int]:
    """Two points between which a good one lies, or a good one; whether it is one; trials and evaluations."""
    before, point = start, at(t)
    used, trials = 1, 0
    while trials < max_ls:
        if too_high(point) or (trials > 1 and point.loss >= before.loss):
            return [before, point], False, trials, used
        if flat(point):
            return [point], True, trials, used
        if point.slope >= 0:
            return [before, point], False, trials, used
        # Further, by the cubic's minimum, between a little and ten times as far.
        bounds = (point.t + 0.01 * (point.t - before.t), point.t * 10)
        length = cubic_minimum(before.t, before.loss, before.slope, point.t, point.loss, point.slope, bounds)
        before, point = point, at(length)
        used += 1
        trials += 1
    return [start, point], False, trials, used
