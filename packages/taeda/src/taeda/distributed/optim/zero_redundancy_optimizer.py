"""An optimizer whose state is spread over processes: each steps its share of the parameters and sends the results."""

from __future__ import annotations

from typing import Any

import taeda as torch
import taeda.distributed as dist
from taeda import optim
from taeda.distributed import _world

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(optim.Optimizer):
    """Any optimizer, each process keeping the state of its share of the parameters.

    Args:
        params: Parameters, or groups of them, the same in all processes.
        optimizer_class: The optimizer.
        process_group: The processes; None for all.
        parameters_as_bucket_view, overlap_with_ddp: Accepted; with the second the optimizer works as without.
        defaults: Arguments of the optimizer.

    Raises:
        RuntimeError: `state_dict` was called before `consolidate_state_dict`.

    References:
        S. Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020.

    Example:
        >>> ZeroRedundancyOptimizer(net.parameters(), taeda.optim.Adam, lr=0.01)  # doctest: +SKIP
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type,
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        self.process_group = process_group or _world.default_group()
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self._class, self._arguments = optimizer_class, dict(defaults)
        groups = [dict(g) if isinstance(g, dict) else g for g in list(params)]
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        self._all: list[dict[str, Any]] = []
        super().__init__(groups, defaults)
        self._share()
        self._whole: list[dict[str, Any]] = []

    def _share(self) -> None:
        """Give each process parameters of about as many elements."""
        loads = [0] * self.world_size
        self._owner: dict[int, int] = {}
        for group in self.param_groups:
            for p in sorted(group["params"], key=lambda v: -v.numel()):
                place = loads.index(min(loads))
                self._owner[id(p)] = place
                loads[place] += p.numel()
        mine = [
            {**g, "params": [p for p in g["params"] if self._owner[id(p)] == self.rank]}
            for g in self.param_groups
        ]
        kept = [g if g["params"] else {**g, "params": [torch.zeros(0)]} for g in mine]
        self.optim = self._class(kept, **self._arguments)
        for own, group in zip(self.optim.param_groups, self.param_groups, strict=True):
            for key, value in own.items():
                group.setdefault(key, value)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters; their shares are dealt out again when there is a state already."""
        super().add_param_group(param_group)
        if hasattr(self, "optim"):
            self._share()

    def _settings(self) -> None:
        """Let changes of settings, as of learning rates, reach the optimizer of this process."""
        for own, group in zip(self.optim.param_groups, self.param_groups, strict=True):
            own.update({key: value for key, value in group.items() if key != "params"})

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """Steps the share of this process, and gets what others stepped."""
        self.process_group.notify(self)
        self._settings()
        found = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        with torch.no_grad():
            for place in range(self.world_size):
                values = [p for g in self.param_groups for p in g["params"] if self._owner[id(p)] == place]
                kinds: dict[Any, list[Any]] = {}
                for p in values:
                    kinds.setdefault(p.dtype, []).append(p)
                for alike in kinds.values():
                    flat = torch.cat([p.detach().reshape(-1) for p in alike])
                    self.process_group.broadcast([flat], place, later=False)
                    if place != self.rank:
                        for p, part in zip(alike, flat.split([v.numel() for v in alike]), strict=True):
                            p.detach().copy_(part.view(tuple(p.shape)))
        return found

    def _quiet_step(self) -> None:
        """A step of a process that is done: without gradients it sends its share as it is."""
        kept = [(p, p.grad) for g in self.param_groups for p in g["params"]]
        config, self._join_config = getattr(self, "_join_config", None), None
        for p, _ in kept:
            p.grad = None
        try:
            self.step()
        finally:
            self._join_config = config
            for p, gradient in kept:
                p.grad = gradient

    def _numbers(self) -> dict[int, int]:
        return {id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Brings the state of all processes to one, which can then call `state_dict`."""
        self._settings()
        numbers = self._numbers()
        mine = {numbers[id(p)]: dict(own) for p, own in self.optim.state.items() if id(p) in numbers}
        every: list[Any] | None = [None] * self.world_size if self.rank == to else None
        where = dist.get_global_rank(self.process_group, to)
        dist.gather_object(mine, every, dst=where, group=self.process_group)
        self._whole = every or []

    def state_dict(self) -> dict[str, Any]:
        """The state of all processes, after `consolidate_state_dict` in the process to which it was brought.

        Raises:
            RuntimeError: It was not brought here.
        """
        if not self._whole:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        numbers = self._numbers()
        groups = [{**g, "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        state = {number: own for each in self._whole for number, own in each.items()}
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes a state of all processes; each keeps its share."""
        numbers = self._numbers()
        own_groups, state, count = [], {}, 0
        for group, own in zip(state_dict["param_groups"], self.optim.param_groups, strict=True):
            placed = []
            for p in own["params"]:
                number = numbers.get(id(p))
                if number is not None and number in state_dict["state"]:
                    state[count] = state_dict["state"][number]
                placed.append(count)
                count += 1
            own_groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": placed})
        self.optim.load_state_dict({"state": state, "param_groups": own_groups})
        for group, given in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({key: value for key, value in given.items() if key != "params"})
        self._whole = []

    @property
    def join_device(self) -> Any:
        """Where parameters are."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    def join_hook(self, **kwargs: Any) -> Any:
        """What a process that is done does: step with the others, without gradients of its own."""
        from taeda.distributed.algorithms.join import JoinHook

        steps = self

        class _Hook(JoinHook):
            def main_hook(self) -> None:
                steps._quiet_step()

        return _Hook()
