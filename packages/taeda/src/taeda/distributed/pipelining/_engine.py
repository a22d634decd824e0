"""The engine of all schedules: does one action after the other, in the order that a schedule gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda as torch
from taeda.distributed.pipelining import _orders
from taeda.distributed.pipelining._orders import B, F, W, _Action
from taeda.distributed.pipelining._stages import _PipelineStageBase, detached
from taeda.distributed.pipelining.microbatch import merge_chunks, split_args_kwargs_into_chunks
from taeda.utils import _pytree


class _PipelineSchedule:
    """What all schedules have in common: `step`, `eval` and the engine.

    Args:
        n_microbatches: Into how many microbatches a batch is cut.
        loss_fn: The loss of a microbatch, of the last stage's result and the target. None runs forwards only.
        args_chunk_spec, kwargs_chunk_spec: How arguments are cut, as `split_args_kwargs_into_chunks` takes it.
        output_merge_spec: How results are put together, as `merge_chunks` takes it.
        scale_grads: Divide gradients by the number of microbatches after each step, for losses that are means. What
            was in `grad` before is divided too: set gradients to zero between steps.
    """

    _stages: list[_PipelineStageBase]

    def __init__(
        self,
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: tuple[Any, ...] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        if not isinstance(n_microbatches, int) or n_microbatches < 1:
            raise ValueError(self._text("n_microbatches", "a number from 1", repr(n_microbatches)))
        if loss_fn is not None and not callable(loss_fn):
            raise TypeError(self._text("loss_fn", "a function or None", type(loss_fn).__name__))
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._has_backward = loss_fn is not None
        self._internal_losses: dict[int, Any] = {}

    def _text(self, argument: str, expected: str, found: object) -> str:
        return f"{type(self).__name__}: argument {argument}: expected {expected}, found {found}"

    # A step

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a batch through the pipeline, forwards and backwards; every process of the group calls it.

        Args:
            *args: Arguments of the model, in the process that has the first stage.
            target: The loss function's second argument, in the process that has the last stage. Cut along dimension 0.
            losses: A list that gets the loss of each microbatch in the process that has the last stage.
            return_outputs: Return the results.
            loss_kwargs: Further arguments of the loss function.
            **kwargs: Arguments of the model by name; a stage takes those that it is given.

        Returns:
            The results of the batch in the process that has the last stage; None in others.

        Raises:
            ValueError: The batch has fewer rows than there are microbatches, or the target is missing. RuntimeError:
            Gradients are switched off.

        Example:
            >>> schedule.step(x) if rank == 0 else schedule.step(target=y, losses=losses)  # doctest: +SKIP
        """
        if self._has_backward and not torch.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under "
                "torch.no_grad() context. Please call eval() instead."
            )
        for stage in self._stages:
            stage.has_backward = self._has_backward
            stage.clear_runtime_states()
        arg_mbs, kwarg_mbs = self._split_inputs(args, kwargs)
        target_mbs = self._split_target(target)
        self._step_microbatches(arg_mbs, kwarg_mbs, target_mbs, losses, return_outputs, loss_kwargs)
        last = next((stage for stage in self._stages if stage.is_last), None)
        return self._merge_outputs(last.output_chunks) if last is not None and return_outputs else None

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any) -> Any:
        """`step` that runs forwards only. Losses are computed where there is a target.

        Example:
            >>> with taeda.no_grad():  # doctest: +SKIP
            ...     result = schedule.eval(x) if rank == 0 else schedule.eval()
        """
        before, self._has_backward = self._has_backward, False
        try:
            return self.step(*args, target=target, losses=losses, **kwargs)
        finally:
            self._has_backward = before

    def _split_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> tuple[Any, Any]:
        if not args and not kwargs:
            return [()] * self._n_microbatches, [{}] * self._n_microbatches
        return split_args_kwargs_into_chunks(
            args, kwargs, self._n_microbatches, self._args_chunk_spec, self._kwargs_chunk_spec
        )

    def _split_target(self, target: Any) -> list[Any] | None:
        if target is None:
            return None
        parts, _ = split_args_kwargs_into_chunks((target,), None, self._n_microbatches)
        return [part for (part,) in parts]

    def _merge_outputs(self, output_chunks: list[Any]) -> Any:
        """The results of the batch, of those of its microbatches."""
        whole = _pytree.tree_map(detached, output_chunks) if self._has_backward else output_chunks
        return merge_chunks(whole, self._output_merge_spec)

    def _check_inputs(
        self,
        arg_mbs: list[Any] | None = None,
        kwarg_mbs: list[Any] | None = None,
        target_mbs: list[Any] | None = None,
        losses: list[Any] | None = None,
    ) -> tuple[list[Any], list[Any]]:
        """Check what the microbatches are; the arguments of each, and those by name."""
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        for name, parts in (("arg_mbs", arg_mbs), ("kwarg_mbs", kwarg_mbs), ("target_mbs", target_mbs)):
            if parts is None:
                continue
            if not isinstance(parts, list):
                raise TypeError(f"{name} must be a list but got a {type(parts)}")
            if len(parts) != self._n_microbatches:
                raise ValueError(
                    f"{type(self).__name__}: Expecting {self._n_microbatches} {name} but got {len(parts)}: the batch "
                    "has too few rows"
                )
        return arg_mbs or [()] * self._n_microbatches, kwarg_mbs or [{}] * self._n_microbatches

    # The engine

    def _own_order(self) -> Sequence[_Action | None]:
        """What this process does."""
        raise NotImplementedError(f"{type(self).__name__} has no order of actions")

    def _step_microbatches(
        self,
        arg_mbs: list[Any] | None = None,
        kwarg_mbs: list[Any] | None = None,
        target_mbs: list[Any] | None = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Run the microbatches; the arguments of each are given."""
        arg_mbs, kwarg_mbs = self._check_inputs(arg_mbs, kwarg_mbs, target_mbs, losses)
        self._check_target(target_mbs, losses)
        stages = {stage.stage_index: stage for stage in self._stages}
        self._internal_losses.clear()
        for stage in self._stages:
            stage._beside = stages
            stage._ask(kwarg_mbs[0])
        for stage in self._stages:
            stage._answer()
        done = dict.fromkeys(stages, 0)
        for index, kind, number, _ in _orders.plain(self._own_order()):
            stage = stages[index]
            assert number is not None
            if kind is F:
                output = stage.forward_one_chunk(number, arg_mbs[number], kwarg_mbs[number], return_outputs)
                self._keep_loss(stage, output, target_mbs, number, loss_kwargs)
            elif self._has_backward and kind is W:
                stage.backward_weight_one_chunk(number)
            elif self._has_backward:
                done[index] += 1
                loss = self._internal_losses.get(number) if stage.is_last else None
                last = done[index] == self._n_microbatches
                stage.backward_one_chunk(number, loss, full_backward=kind is B, last_backward=last)
        for stage in self._stages:
            stage._wait_for_sent()
            if self._has_backward:
                stage.perform_reduce_grad(self._n_microbatches if self.scale_grads else 1)
        self._give_losses(losses)

    def _check_target(self, target_mbs: list[Any] | None, losses: list[Any] | None) -> None:
        needs = self._loss_fn is not None and (self._has_backward or losses is not None)
        if needs and target_mbs is None and any(stage.is_last for stage in self._stages):
            text = self._text("target", "a tensor in the process of the last stage", "None")
            raise ValueError(text.replace(":", ".step:", 1))

    def _keep_loss(self, stage: Any, output: Any, targets: Any, number: int, loss_kwargs: Any) -> None:
        if stage.is_last and self._loss_fn is not None and targets is not None:
            self._internal_losses[number] = self._loss_fn(output, targets[number], **(loss_kwargs or {}))

    def _give_losses(self, losses: list[Any] | None) -> None:
        """Put the losses into the program's list, in the order of the microbatches."""
        if losses is not None and any(stage.is_last for stage in self._stages):
            losses[:] = [self._internal_losses[number] for number in sorted(self._internal_losses)]
        self._internal_losses.clear()
