"""The base of all schedules: from a function of the step to the learning rates of an optimizer's groups."""

from __future__ import annotations

import warnings
from types import FunctionType
from typing import Any

from taeda_optim.optimizer import Optimizer
from taeda_registry.slots import tensor


class LRScheduler:
    """Base class. A subclass defines ``rate(step, base)``, or ``get_lr()`` from ``last_epoch`` and ``base_lrs``.

    A schedule that is alone sets exactly the rate of its step. Where something else has changed a group's rate since
    (another schedule on the same optimizer, or the program), the change from the last step to this one is applied to
    the rate found, so that schedules stepped one after another multiply.

    Args:
        optimizer: whose groups' ``lr`` is set.
        last_epoch: the step to go on from; -1 begins, other values need ``initial_lr`` in every group.

    Raises:
        TypeError: no Optimizer.
        KeyError: a group without ``initial_lr`` where it is needed.
    """

    # What a step cannot fall below, in the sense that the distance to it is what shrinks.
    eta_min: float = 0.0
    # Whether a schedule that goes on from a step takes the rate that it finds as that of its next step, as it stands
    # after a state was loaded; schedules that change the rate at single steps, or know it from the step, do not.
    _takes_found: bool = False
    # Whether a rate that something else has changed is set anew instead of multiplied.
    _sets_anew: bool = False
    # Whether steps to a given epoch are usual.
    _takes_epochs: bool = False
    # Attributes that no state holds: functions, what follows from others, and the optimizer.
    _unsaved: frozenset[str] = frozenset(
        {"optimizer", "_pure", "_pure_at", "_get_lr_called_within_step", "_is_initial"}
    )
    # What schedules of others ask in `get_lr`: whether a step calls it, and whether that is the constructor's.
    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    # The step whose rates `_pure` has; programs begin a schedule again by setting `last_epoch`.
    _pure_at: float | None = None

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        kind = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{kind}: argument 'optimizer' must be an Optimizer, found {type(optimizer).__name__}"
            )
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"{kind}: going on from step {last_epoch} needs 'initial_lr' in group {i}")
        self.optimizer = optimizer
        _watch_first_step(optimizer)
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._last_lr = list(self.base_lrs) if last_epoch == -1 else self.rates(last_epoch)
        self._pure, self._pure_at = (
            list(self._last_lr),
            last_epoch,
        )  # what this schedule alone gives at last_epoch
        if last_epoch == -1 or not self._takes_found:
            self._initial_step()
            return
        self._step_count, self.last_epoch = 1, last_epoch + 1
        self._pure, self._pure_at = self._rates_now(), self.last_epoch
        self._last_lr = [float(group["lr"]) for group in optimizer.param_groups]

    def _initial_step(self) -> None:
        """The constructor's step, which sets the first rates; derived schedules may do something else."""
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _begin_again(self) -> None:
        """The constructor's step once more, from the rates that the groups have now."""
        self.last_epoch, self._step_count = -1, 0
        self._pure = self._last_lr = list(self.base_lrs)
        self._initial_step()

    def _rates_now(self, epoch: int | None = None) -> list[float]:
        """What `get_lr` gives a step; derived schedules may have another formula for steps to a given epoch."""
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        if closed is None and type(self).get_lr is LRScheduler.get_lr:
            return self.get_lr()
        with _enable_get_lr_call(self):
            return self.get_lr() if closed is None else closed()

    def rate(self, step: int, base: float) -> float:
        """The learning rate at ``step`` of a group that began with ``base``."""
        raise NotImplementedError(f"{type(self).__name__}.rate is not defined")

    def rates(self, step: int) -> list[float]:
        """The learning rates of all groups at ``step``, whatever came before."""
        return [self.rate(step, base) for base in self.base_lrs]

    def get_lr(self) -> list[float]:
        """The learning rates that this schedule gives at the current step."""
        return self.rates(self.last_epoch)

    def get_last_lr(self) -> list[Any]:
        """The learning rates that the last step has set: numbers, or tensors where the groups have tensors."""
        groups = self.optimizer.param_groups
        return [_as_given(rate, group) for rate, group in zip(self._last_lr, groups, strict=False)]

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next step and sets the groups' learning rates; with ``epoch``, goes to that step.

        A UserWarning tells of a first step before the optimizer's, by which the first rate would be lost, and of
        ``epoch``, which steps do not need.
        """
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", True):
            warnings.warn(_TOO_EARLY, UserWarning, stacklevel=2)
        if epoch is not None and not self._takes_epochs:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._go(epoch)

    def _go(self, epoch: int | None = None) -> None:
        """A step without warnings."""
        self._meet_groups()
        names = ("_step_count", "last_epoch", "_pure", "_pure_at")
        held = {name: vars(self)[name] for name in names if name in vars(self)}
        try:
            self._set(self._next_rates(epoch))
        except BaseException:  # of a program's function, whose step is not made then
            vars(self).update(held)
            raise

    def _next_rates(self, epoch: int | None) -> list[float]:
        """Goes to the next step; the rates that are to be set there."""
        self._step_count += 1
        before, self.last_epoch = self.last_epoch, self.last_epoch + 1 if epoch is None else epoch
        pure = self._rates_now(epoch)
        if epoch is None and not self._sets_anew and type(self).get_lr is LRScheduler.get_lr:
            if before != self._pure_at:
                self._pure = list(self.base_lrs) if before < 0 else self.rates(before)
            rates = [self._relative(i, rate) for i, rate in enumerate(pure)]
        else:
            rates = list(pure)
        self._pure, self._pure_at = list(pure), self.last_epoch
        return rates

    def _meet_groups(self) -> None:
        """Takes in groups that the optimizer has got since: they go on from their own rates, in the same proportions.

        Schedules that were given something for each group cannot; they say so when they set the rates.
        """
        kind, groups = type(self), self.optimizer.param_groups
        if len(groups) == len(self.base_lrs) or self._sets_anew:
            return
        if kind.rates is LRScheduler.rates and kind.get_lr is LRScheduler.get_lr:
            for group in groups[len(self.base_lrs) :]:
                base = float(group.get("initial_lr", group["lr"]))
                self.base_lrs.append(base)
                self._pure.append(self.rate(self.last_epoch, base))
                self._last_lr.append(float(group["lr"]))

    def _relative(self, i: int, rate: float) -> float:
        """The rate of group i when what others did to it since the last step is kept."""
        found, before, low = float(self.optimizer.param_groups[i]["lr"]), self._pure[i], self.eta_min
        if found == self._last_lr[i] == before:
            return rate
        if before == low:
            return found + (rate - low)
        return low + (found - low) * (rate - low) / (before - low)

    def _set(self, rates: list[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, rate)
        self._last_lr = rates

    def state_dict(self) -> dict[str, Any]:
        """Step, rates and numbers of the schedule, under PyTorch's keys, so that either library takes the other's.

        Functions given to the schedule are left out; of callable objects the attributes are saved.
        """
        state: dict[str, Any] = {}
        for key, value in self._saved().items():
            if key == "_last_lr":  # where PyTorch's states have them
                state.update(_FLAGS)
            state[key] = value
        return state

    def _saved(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in self._unsaved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes to a saved step and sets its learning rates. States of PyTorch's schedules serve as well.

        Raises:
            ValueError: the state has no step, or more groups; nothing has changed.
        """
        kind = type(self).__name__
        if "last_epoch" not in state_dict:
            raise ValueError(
                f"{kind}.load_state_dict: the state has no 'last_epoch', found {sorted(state_dict)}"
            )
        groups = len(self.optimizer.param_groups)
        for name in ("base_lrs", "_last_lr"):
            if len(state_dict.get(name, ())) > groups:
                raise ValueError(
                    f"{kind}.load_state_dict: '{name}' has {len(state_dict[name])} rates, expected {groups}"
                )
        self._take(state_dict)
        self._pure, self._pure_at = self._rates_now(), self.last_epoch
        rates = list(state_dict.get("_last_lr", self._pure))
        # Groups that came after the schedule stand in the states of some libraries' schedules, not in others'.
        self._set(rates + [float(group["lr"]) for group in self.optimizer.param_groups[len(rates) :]])
        if len(rates) < groups:
            self._last_lr, self.base_lrs = rates, list(self.base_lrs)
            self._meet_groups()

    def _take(self, state: dict[str, Any]) -> None:
        """Sets the attributes that a state names and this schedule has."""
        self.__dict__.update(
            {k: v for k, v in state.items() if k in self.__dict__ and k not in self._unsaved}
        )


#: What schedules say, those of others too, that still take the number of an epoch.
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler."
)
_TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first value of the schedule is skipped; "
    "call `optimizer.step()` first"
)


def _watch_first_step(optimizer: Optimizer) -> None:
    """Let an optimizer know whether it has stepped: by a hook that goes after the first step, so that it costs none."""
    if "_opt_called" in optimizer.__dict__:
        return
    # One that wraps another and has not called `__init__` has no hooks, and is not watched.
    optimizer._opt_called = "_optimizer_step_post_hooks" not in optimizer.__dict__  # type: ignore[attr-defined]
    if optimizer._opt_called:  # type: ignore[attr-defined]
        return

    def stepped(_: Any, args: Any, kwargs: Any) -> None:
        optimizer._opt_called = True  # type: ignore[attr-defined]
        handle.remove()

    handle = optimizer.register_step_post_hook(stepped)


# What PyTorch's states hold beside the schedule's own numbers, always with these values between two steps.
_FLAGS = {"_is_initial": False, "_get_lr_called_within_step": False}


class _enable_get_lr_call:
    """Context of schedules of others, in which their `get_lr` is called by `step`.

    Args:
        o: The schedule.
    """

    def __init__(self, o: Any) -> None:
        self.o = o

    def __enter__(self) -> _enable_get_lr_call:
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, *exception: object) -> None:
        self.o._get_lr_called_within_step = False


def _warn_get_lr_called_within_step(lr_scheduler: Any) -> None:
    """What `get_lr` of others' schedules calls first: a warning where a program calls it in the place of `get_last_lr`.

    Args:
        lr_scheduler: The schedule.
    """
    if not lr_scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            stacklevel=2,
        )


def set_rate(group: dict[str, Any], rate: float) -> None:
    """Sets a group's rate; one that is a tensor stays the same tensor."""
    if isinstance(group["lr"], tensor.Tensor):
        with tensor.no_grad():
            group["lr"].fill_(rate)
    else:
        group["lr"] = rate


def _as_given(rate: float, group: dict[str, Any]) -> Any:
    """A rate in the form that the group's has."""
    lr = group["lr"]
    return tensor.full_like(lr, float(rate)) if isinstance(lr, tensor.Tensor) else rate


def attributes_of(function: Any) -> dict[str, Any] | None:
    """What a state keeps of a function that a schedule was given: nothing, or a callable object's attributes."""
    attributes = getattr(function, "__dict__", None)
    return None if attributes is None or isinstance(function, FunctionType) else dict(attributes)


def take_attributes(function: Any, attributes: dict[str, Any] | None) -> None:
    """Gives a callable object the attributes that `attributes_of` returned."""
    if attributes:
        function.__dict__.update(attributes)


def per_group(kind: str, name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """One value for each group, from one for all or a list; ValueError for a list of another length.

    Tensors are read at once: what is done to them afterwards is not the schedule's.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * count
    if len(value) != count:
        raise ValueError(
            f"{kind}: argument '{name}' has {len(value)} values, expected {count}, one for each group"
        )
    return [one.item() if hasattr(one, "item") else one for one in value]
