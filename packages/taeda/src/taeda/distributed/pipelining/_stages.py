"""Stages of a pipeline: a module of which each process runs its own, and what goes from one to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import taeda as torch
import taeda.distributed as dist
from taeda.distributed.pipelining import _links
from taeda.distributed.pipelining._orders import loop_places
from taeda.nn.parallel import DistributedDataParallel

__all__ = ["PipelineStage"]

# What a message between stages is.
_VALUES, _GRADIENTS, _WISHES = range(3)
# Tags of a pipeline begin here, so that they are no program's own.
_FIRST_TAG = 1 << 40


@dataclass
class _Kept:
    """A microbatch between its forward and its backward."""

    outputs: tuple[Any, ...]
    received: dict[int, list[Any]] = field(default_factory=dict)
    roots: dict[str, Any] = field(default_factory=dict)


class _PipelineStageBase:
    """What stages have in common, whether a program cut its module by hand or `pipeline` did.

    Args:
        submodule: What the stage computes.
        stage_index: Its place among the stages.
        num_stages: How many there are.
        device: Where it computes; what it receives is put there.
        group: The processes that share the pipeline; None for all.
        dw_builder: Gives after each backward a function that completes gradients of weights, for modules that leave
            these to it. Schedules that take backwards apart call it when it is the weights' turn, others at once.

    Raises:
        ValueError: There is no such stage, or no group. RuntimeError: There are more processes than stages.
    """

    def __init__(
        self,
        submodule: Any,
        stage_index: int,
        num_stages: int,
        device: Any,
        group: Any = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
    ) -> None:
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if not isinstance(submodule, torch.nn.Module):
            raise TypeError(
                f"{type(self).__name__}: argument submodule: expected a Module, found {type(submodule).__name__}"
            )
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group, self.dw_builder = torch.device(device), group, dw_builder
        self.group_rank, self.group_size = dist.get_rank(group), dist.get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.stage_index_to_group_rank = loop_places(self.group_size, num_stages)
        self.has_backward = False
        self.log_prefix = f"[Stage {stage_index}]"
        self.fwd_cache: dict[int, _Kept] = {}
        self.output_chunks: list[Any] = []
        self.dw_runner: dict[int, Callable[..., None]] = {}
        self._beside: dict[int, _PipelineStageBase] = {}
        self._arrived: dict[tuple[int, int, int], list[Any]] = {}
        self._sent: list[Any] = []

    @property
    def is_first(self) -> bool:
        """Whether it gets the arguments of the program."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether its results are those of the program."""
        return self.stage_index == self.num_stages - 1

    # What differs between kinds of stages

    def _sources(self) -> list[int]:
        """The stages from which it receives."""
        raise NotImplementedError

    def _targets(self) -> list[int]:
        """The stages to which it sends."""
        raise NotImplementedError

    def _outgoing(self, target: int, kept: _Kept) -> list[Any]:
        """What a later stage gets."""
        raise NotImplementedError

    def _call_arguments(
        self, kept: _Kept, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """With what the module is called."""
        raise NotImplementedError

    def _ask(self, kwargs: dict[str, Any]) -> None:
        """Before a step: say what the first stage has to pass on."""

    def _answer(self) -> None:
        """Before a step: hear what others need of the first stage."""

    # Messages

    def _tag(self, kind: int, source: int, target: int, microbatch: int) -> int:
        edge = source * self.num_stages + target
        return _FIRST_TAG + (microbatch * 3 + kind) * self.num_stages**2 + edge

    def _send(self, kind: int, target: int, microbatch: int, values: list[Any]) -> None:
        beside = self._beside.get(target)
        if beside is not None:
            kept = [_cut_off(value) for value in values] if kind == _VALUES else values
            beside._arrived[kind, self.stage_index, microbatch] = kept
            return
        tag = self._tag(kind, self.stage_index, target, microbatch)
        place = self.stage_index_to_group_rank[target]
        self._sent = [sent for sent in self._sent if sent[0] is not None and not sent[0].is_completed()]
        self._sent += _links.send(values, self.group, place, tag, f"stage {self.stage_index}")

    def _receive(self, kind: int, source: int, microbatch: int) -> list[Any]:
        if source in self._beside:
            return self._arrived.pop((kind, source, microbatch))
        tag = self._tag(kind, source, self.stage_index, microbatch)
        return _links.receive(self.group, self.stage_index_to_group_rank[source], tag, self.device)

    def _wait_for_sent(self) -> None:
        """Wait until everything that was sent has left."""
        for work, _ in self._sent:
            if work is not None:
                work.wait()
        self._sent.clear()

    def clear_runtime_states(self) -> None:
        """Forget the microbatches of the step before."""
        for state in (self.fwd_cache, self.output_chunks, self.dw_runner, self._arrived, self._sent):
            state.clear()

    # Forward

    def forward_one_chunk(
        self,
        fwd_chunk_id: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        save_forward_output: bool = True,
    ) -> Any:
        """Run a microbatch forwards: receive, compute, send.

        Args:
            fwd_chunk_id: The number of the microbatch.
            args: Arguments of the program, which the first stage uses.
            kwargs: Those by name, which every stage may use.
            save_forward_output: Keep the result of the last stage.
        """
        kept = _Kept(())
        for source in self._sources():
            values = self._receive(_VALUES, source, fwd_chunk_id)
            if not self.has_backward:
                values = [detached(value) for value in values]
            kept.received[source] = values
        given, named = self._call_arguments(kept, args, kwargs or {})
        try:
            output = self.forward_maybe_with_nosync(*given, **named)
        except Exception as error:
            error.add_note(f"in stage {self.stage_index} of {self.num_stages}, microbatch {fwd_chunk_id}")
            raise
        kept.outputs = tuple(output) if isinstance(output, (tuple, list)) else (output,)
        self._check_outputs(kept.outputs)
        if self.is_last and save_forward_output:
            self.output_chunks.append(output)
        for target in self._targets():
            self._send(_VALUES, target, fwd_chunk_id, self._outgoing(target, kept))
        if self.has_backward:
            self.fwd_cache[fwd_chunk_id] = kept
        return output

    def _check_outputs(self, outputs: tuple[Any, ...]) -> None:
        """Check the results against what was said of them."""

    def forward_maybe_with_nosync(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result; processes that train the same stage do not average gradients of its forward yet."""
        whole = isinstance(self.submod, DistributedDataParallel)
        with self.submod.no_sync() if whole else nullcontext():
            return self.submod(*args, **kwargs)

    # Backward

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss: Any = None, full_backward: bool = True, last_backward: bool = False
    ) -> None:
        """Run a microbatch backwards: receive gradients, compute, send those of what the stage received.

        Args:
            bwd_chunk_id: The number of the microbatch.
            loss: Its loss, in the last stage.
            full_backward: Complete gradients of weights too where `dw_builder` was given; False leaves them to
                `backward_weight_one_chunk`.
            last_backward: No other one follows in this step: processes that train the same stage average now.
        """
        if not self.has_backward:
            return
        kept = self.fwd_cache.pop(bwd_chunk_id, None)
        if kept is None:
            raise RuntimeError(
                f"{self.log_prefix} backward of microbatch {bwd_chunk_id}: expected its forward before, found those "
                f"of {sorted(self.fwd_cache)}"
            )
        roots, gradients = [loss], [None]
        if not self.is_last:
            roots, gradients = self._incoming_gradients(kept, bwd_chunk_id)
        self._before_backward(last_backward)
        wanted = [i for i, root in enumerate(roots) if isinstance(root, torch.Tensor) and root.requires_grad]
        if wanted:
            torch.autograd.backward([roots[i] for i in wanted], [gradients[i] for i in wanted])
        if self.dw_builder is not None:
            runner = self.dw_builder()
            if full_backward:
                runner()
            else:
                self.dw_runner[bwd_chunk_id] = runner
        for source, values in kept.received.items():
            found = [value.grad if isinstance(value, torch.Tensor) else None for value in values]
            self._send(_GRADIENTS, source, bwd_chunk_id, found)

    def _incoming_gradients(self, kept: _Kept, microbatch: int) -> tuple[list[Any], list[Any]]:
        """What was sent to later stages, and the gradients that come back: their sum where several got the same."""
        roots: dict[int, Any] = {}
        total: dict[int, Any] = {}
        for target in self._targets():
            sent = self._outgoing(target, kept)
            for value, gradient in zip(sent, self._receive(_GRADIENTS, target, microbatch), strict=True):
                if gradient is None:
                    continue
                roots[id(value)] = value
                known = total.get(id(value))
                total[id(value)] = gradient if known is None else known + gradient
        return list(roots.values()), [total[key] for key in roots]

    def _before_backward(self, last: bool) -> None:
        """Let processes that train the same stage average gradients after the last microbatch alone."""
        if isinstance(self.submod, DistributedDataParallel):
            self.submod._await_backward(last)
        elif hasattr(self.submod, "set_requires_gradient_sync"):
            self.submod.set_requires_gradient_sync(last)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """Complete the gradients of weights of a microbatch, where `dw_builder` was given.

        Without it there is nothing left to do: `backward_one_chunk` has computed them beside the others, which costs
        less than a second way through the graph.
        """
        runner = self.dw_runner.pop(bwd_chunk_id, None)
        if runner is not None:
            runner()

    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divide the gradients of the stage's parameters, those of earlier steps with them."""
        if grad_scale_factor == 1:
            return
        for parameter in self.submod.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(grad_scale_factor)

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """End a step: `scale_grads`."""
        self.scale_grads(grad_scale_factor)


def _cut_off(value: Any) -> Any:
    """A tensor as if it had come from another process."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


def detached(value: Any) -> Any:
    """A tensor without its graph; anything else as it is."""
    return value.detach() if isinstance(value, torch.Tensor) else value


# Stages cut by hand


def _listed(values: Any, name: str, or_none: bool = False) -> tuple[Any, ...] | None:
    """Example tensors as a tuple."""
    if values is None:
        return None
    found = (values,) if isinstance(values, torch.Tensor) else values
    if not isinstance(found, (tuple, list)):
        raise TypeError(
            f"PipelineStage: argument {name}: expected a tensor or a tuple of tensors, found {type(values).__name__}"
        )
    for value in found:
        if not isinstance(value, torch.Tensor) and not (or_none and value is None):
            raise TypeError(
                f"PipelineStage: argument {name}: expected a tensor or a tuple of tensors, found a "
                f"{type(value).__name__} in it"
            )
    return tuple(found)


class PipelineStage(_PipelineStageBase):
    """A stage whose module the program made itself: it gets as arguments what the stage before it returns.

    Args:
        submodule: What the stage computes. All but the last return a tensor, or a tuple of tensors.
        stage_index: Its place among the stages, from 0.
        num_stages: How many there are.
        device: Where it computes; the module has to be there.
        input_args: Examples of what it gets, a microbatch. Not needed: shapes come with the tensors. Where given, what
            arrives is checked against them.
        output_args: Examples of what it returns, checked likewise.
        output_grads, input_grads: Examples of gradients; accepted.
        group: The processes that share the pipeline; None for all.
        dw_builder: Gives after each backward a function that completes gradients of weights; None where the module
            needs none.
        get_mesh: Accepted; distributed tensors are not sent between stages.

    Raises:
        ValueError: There is no such stage, or no group of processes. TypeError: No module, or examples that are no
        tensors. RuntimeError: There are more processes than stages.

    Example:
        >>> stage = PipelineStage(layers, rank, 2, "cpu")  # doctest: +SKIP
        >>> schedule = ScheduleGPipe(stage, 4, loss_fn=taeda.nn.functional.mse_loss)  # doctest: +SKIP
    """

    def __init__(
        self,
        submodule: Any,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: Any = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
        get_mesh: Any = None,
    ) -> None:
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        self._inputs_like = _listed(input_args, "input_args")
        self._outputs_like = _listed(output_args, "output_args")
        _listed(output_grads, "output_grads", True)
        _listed(input_grads, "input_grads", True)

    def _sources(self) -> list[int]:
        return [] if self.is_first else [self.stage_index - 1]

    def _targets(self) -> list[int]:
        return [] if self.is_last else [self.stage_index + 1]

    def _outgoing(self, target: int, kept: _Kept) -> list[Any]:
        return list(kept.outputs)

    def _call_arguments(
        self, kept: _Kept, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = args if self.is_first else tuple(kept.received[self.stage_index - 1])
        self._check("input_args", self._inputs_like, given)
        return given, kwargs

    def _check_outputs(self, outputs: tuple[Any, ...]) -> None:
        self._check("output_args", self._outputs_like, outputs)

    def _check(self, name: str, expected: tuple[Any, ...] | None, found: Sequence[Any]) -> None:
        if expected is None:
            return
        described = [_description(value) for value in found]
        wanted = [_description(value) for value in expected]
        if described != wanted:
            raise ValueError(
                f"PipelineStage {self.stage_index}: argument {name}: expected {', '.join(wanted)}, as the examples "
                f"are, found {', '.join(described) or 'nothing'}"
            )


def _description(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype).rpartition('.')[2]}{list(map(int, value.shape))}"
