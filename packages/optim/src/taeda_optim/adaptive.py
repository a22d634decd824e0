"""Adagrad (Duchi et al., JMLR 2011), Adadelta (Zeiler, 2012), RMSprop (Hinton, 2012) and Rprop (Riedmiller, 1993)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taeda_optim._functional import adadelta, adagrad, rmsprop, rprop  # noqa: F401
from taeda_optim.counting import count_of, next_counts, raise_counts
from taeda_optim.optimizer import (
    Optimizer,
    add_quotient,
    add_scaled,
    check_modes,
    check_range,
    check_rate,
    directed,
    is_sparse,
    number,
    real_view,
)
from taeda_registry.slots import tensor


def _check(kind: str, **values: float) -> None:
    for name, value in values.items():
        check_range(kind, name, value, 0)


class RMSprop(Optimizer):
    """Steps divided by the root of a running mean of squared gradients.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        alpha: decay of the running mean.
        eps: added to the denominator.
        weight_decay: times the parameter, added to the gradient.
        momentum: share of the last step that is kept.
        centered: subtract the squared mean, which leaves the variance.
        maximize: climb instead of descend.

    Raises:
        ValueError: options out of range.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = optim.RMSprop([weight], lr=0.01)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
    """

    _takes_sparse = False

    _counts = True
    _list_names = ("square_avg", "momentum_buffer", "grad_avg", "step")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check("RMSprop", eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        check_rate("RMSprop", lr)
        check_modes("RMSprop", foreach, capturable, differentiable)
        options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        options |= {"centered": centered, "capturable": capturable, "foreach": foreach}
        super().__init__(params, {**options, "maximize": maximize, "differentiable": differentiable})

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        names = {"square_avg"}
        if group["momentum"] > 0:
            names.add("momentum_buffer")
        return names | {"grad_avg"} if group["centered"] else names

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        lr, alpha, momentum = number(group), group["alpha"], group["momentum"]
        states = self._states(params, *sorted(self._state_names(group)))
        for param, grad, state in zip(params, grads, states, strict=True):
            spread = state["square_avg"]
            if self._complex:
                param, grad, spread = real_view(param), real_view(grad), real_view(spread)
            grad = directed(group, param, grad)
            spread.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
            if group["centered"]:
                mean = real_view(state["grad_avg"]).lerp_(grad, 1 - alpha)
                spread = spread.addcmul(mean, mean, value=-1)
            denominator = spread.sqrt().add(group["eps"])
            if momentum > 0:
                step = real_view(state["momentum_buffer"]).mul_(momentum).addcdiv_(grad, denominator)
                add_scaled(param, step, -lr)
            else:
                add_quotient(param, grad, denominator, -lr)
        raise_counts(states)


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients; of sparse ones, for the entries that they hold.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        lr_decay: how fast the rate falls with the steps.
        weight_decay: times the parameter, added to the gradient.
        initial_accumulator_value: what the sums begin with.
        eps: added to the denominator.
        maximize: climb instead of descend.

    Raises:
        ValueError: options out of range.
        RuntimeError: in ``step``, a sparse gradient beside weight decay.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = optim.Adagrad([weight], lr=0.01)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
    """

    _counts = True
    _list_names = ("sum", "step")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check("Adagrad", lr_decay=lr_decay, weight_decay=weight_decay, eps=eps)
        _check("Adagrad", initial_accumulator_value=initial_accumulator_value)
        check_rate("Adagrad", lr)
        check_modes("Adagrad", foreach, False, differentiable, fused)
        options = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        options |= {"initial_accumulator_value": initial_accumulator_value, "foreach": foreach}
        options |= {"maximize": maximize, "differentiable": differentiable, "fused": fused}
        super().__init__(params, options)
        for param in (p for group in self.param_groups for p in group["params"]):
            self._begin(param)

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"sum"}

    def _begun(self, group: dict[str, Any], params: list[Any]) -> list[dict[str, Any]]:
        return [self.state[param] or self._begin(param) for param in params]

    def _init_group(
        self, group: dict[str, Any], params: list[Any], grads: list[Any], *states: list[Any]
    ) -> tuple[bool, bool]:
        """As of `Optimizer`; gives too whether a gradient is sparse, first."""
        is_complex = super()._init_group(group, params, grads, *states)
        return any(is_sparse(grad) for grad in grads), is_complex

    def _begin(self, param: Any) -> dict[str, Any]:
        start = self.defaults["initial_accumulator_value"]
        value = complex(start, start) if param.is_complex() else start
        self.state[param].update(step=count_of(0), sum=tensor.zeros_like(param).fill_(value))
        return self.state[param]

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        lr, lr_decay, eps = number(group), group["lr_decay"], group["eps"]
        states = []
        for param, grad in zip(params, grads, strict=True):
            state = self.state[param] or self._begin(param)
            states.append(state)
            rate = lr / (1 + (next_counts([state])[0] - 1) * lr_decay) if lr_decay else lr
            total = state["sum"]
            if is_sparse(grad):
                self._update_entries(group, param, grad.coalesce(), total, rate)
                continue
            if self._complex:
                param, grad, total = real_view(param), real_view(grad), real_view(total)
            grad = directed(group, param, grad)
            total.addcmul_(grad, grad)
            add_quotient(param, grad, total.sqrt().add(eps), -rate)
        raise_counts(states)

    @staticmethod
    def _update_entries(group: dict[str, Any], param: Any, grad: Any, total: Any, rate: Any) -> None:
        """A step of the entries that a sparse gradient holds: the others stay, and so do their sums."""
        if group["weight_decay"] != 0:
            raise RuntimeError(
                "Adagrad: argument 'weight_decay' must be 0 where gradients are sparse, found "
                f"{group['weight_decay']} (weight_decay option is not compatible with sparse gradients)"
            )
        places, values = tuple(grad.indices().unbind(0)), grad.values()
        if not values.numel():
            return
        values = real_view(-values if group["maximize"] else values)
        param, total = real_view(param), real_view(total)
        sums = total[places].addcmul_(values, values)
        total[places] = sums
        param[places] = param[places] - rate * values / sums.sqrt().add_(group["eps"])

    def share_memory(self) -> None:
        """Moves sums and counts to memory that other processes can map."""
        for state in self.state.values():
            state["sum"].share_memory_()
            state["step"].share_memory_()


class Adadelta(Optimizer):
    """Steps scaled by running means of squared steps over those of squared gradients.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        rho: decay of the running means.
        eps: added inside the roots.
        weight_decay: times the parameter, added to the gradient.
        maximize: climb instead of descend.

    Raises:
        ValueError: options out of range.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = optim.Adadelta([weight], lr=1.0)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
    """

    _takes_sparse = False

    _counts = True
    _list_names = ("square_avg", "acc_delta", "step")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check("Adadelta", eps=eps, weight_decay=weight_decay)
        check_range("Adadelta", "rho", rho, 0, 1 + 1e-15)
        check_rate("Adadelta", lr)
        check_modes("Adadelta", foreach, capturable, differentiable)
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        options |= {"capturable": capturable, "foreach": foreach, "differentiable": differentiable}
        super().__init__(params, options)

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"square_avg", "acc_delta"}

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        states = self._states(params, "square_avg", "acc_delta")
        for param, gradient, state in zip(params, grads, states, strict=True):
            param = real_view(param)
            grad = directed(group, param, real_view(gradient))
            square = real_view(state["square_avg"]).mul_(rho).addcmul_(grad, grad, value=1 - rho)
            deltas = real_view(state["acc_delta"])
            delta = deltas.add(eps).sqrt() / square.add(eps).sqrt() * grad
            deltas.mul_(rho).addcmul_(delta, delta, value=1 - rho)
            add_scaled(param, delta, -number(group))
        raise_counts(states)


class Rprop(Optimizer):
    """Steps of their own size for each element, grown while the gradient keeps its sign, shrunk when it turns.

    Args:
        params: see `Optimizer`.
        lr: first step size.
        etas: factors for shrinking and growing.
        step_sizes: smallest and largest step size.
        maximize: climb instead of descend.

    Raises:
        ValueError: options out of range.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = optim.Rprop([weight], lr=0.01)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
    """

    _takes_sparse = False

    _counts = True
    _list_names = ("prev", "step_size", "step")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate("Rprop", lr)
        check_modes("Rprop", foreach, capturable, differentiable)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Rprop: argument 'etas' must be below and above 1, found {etas}")
        options = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        options |= {"capturable": capturable, "foreach": foreach, "differentiable": differentiable}
        super().__init__(params, options)

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"prev", "step_size"}

    def _begun(self, group: dict[str, Any], params: list[Any]) -> list[dict[str, Any]]:
        lr = float(group["lr"])
        for param in params:
            if not (state := self.state[param]):
                sizes = tensor.zeros_like(param).fill_(complex(lr, lr) if param.is_complex() else lr)
                state.update(step=count_of(0), prev=tensor.zeros_like(param), step_size=sizes)
        return [self.state[param] for param in params]

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        states = self._begun(group, params)
        for param, gradient, state in zip(params, grads, states, strict=True):
            self._update_one(group, real_view(param), real_view(gradient), state)
        raise_counts(states)

    @staticmethod
    def _update_one(group: dict[str, Any], param: Any, gradient: Any, state: dict[str, Any]) -> None:
        (shrink, grow), (low, high) = group["etas"], group["step_sizes"]
        grad = -gradient if group["maximize"] else gradient
        previous, sizes = real_view(state["prev"]), real_view(state["step_size"])
        turned = grad * previous
        factor = tensor.ones_like(sizes).masked_fill_(turned > 0, grow).masked_fill_(turned < 0, shrink)
        sizes.mul_(factor).clamp_(low, high)
        grad = grad.masked_fill(turned < 0, 0)
        param.addcmul_(grad.sign(), sizes, value=-1)
        previous.copy_(grad)
