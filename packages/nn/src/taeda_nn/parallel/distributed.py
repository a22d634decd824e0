"""A module that several processes train together."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

from taeda_nn._bind import Tensor, autograd, tensor
from taeda_nn.modules.module import Module
from taeda_nn.parallel._buckets import GradBucket, broadcast_all, buckets
from taeda_registry import processes

__all__ = ["DistributedDataParallel", "DistributedDataParallelCPU"]

# As PyTorch has them, in megabytes; the first bucket is small, so that the first sum begins early.
_FIRST, _CAP = 1.0, 25.0
_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
    "your module has parameters that were not used in producing loss. You can enable unused parameter detection by "
    "passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by "
    "making sure all `forward` function outputs participate in calculating loss. "
)


class DistributedDataParallel(Module):
    """A module that several processes train together: each has a copy and a share of the batch.

    Parameters and buffers begin as those of the first process. While a backward runs, gradients are averaged over the
    processes, several parameters at a time; after it all have the same.

    Args:
        module: The module, which has the same parameters in all processes.
        device_ids, output_device: The one GPU of the module, to which inputs are brought; None on the cpu.
        dim: Accepted for PyTorch's sake.
        broadcast_buffers: The older name of `forward_sync_buffers`; False also lets buffers begin as they are.
        forward_sync_buffers: Whether each forward begins with the buffers of the first process, as it does by default.
        init_sync: Whether parameters and buffers begin as those of the first process.
        process_group: The processes; None for all.
        device_mesh: The processes as a mesh of one dimension, in the place of `process_group`.
        bucket_cap_mb: How many megabytes of gradients are averaged at a time; None for 25.
        find_unused_parameters: Whether parameters may have no part in the loss; finding them takes a walk through the
            graph in each forward. They keep their gradients where no process used them.
        bucket_cap_mb_list: The same for one bucket after the other; the greatest counts for all.
        gradient_as_bucket_view, check_reduction, mixed_precision, skip_all_reduce_unused_params,
            batched_grad_copy: Accepted for PyTorch's sake.
        static_graph: Whether the same parameters are used in every step; unused ones are then found by what came.
        delay_all_reduce_named_params, param_to_hook_all_reduce: Not there; only None.

    Raises:
        ValueError: There is no group of processes, or devices are given for a module on the cpu.
        RuntimeError: The module has no parameter that needs a gradient, or not the same ones in all processes, or both
            `process_group` and `device_mesh` are given, or a mesh of several dimensions.

    References:
        S. Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020.

    Example:
        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))  # doctest: +SKIP
        >>> net(taeda.ones(3, 4)).sum().backward()  # the gradient is the average over all processes
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Sequence[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        if delay_all_reduce_named_params is not None or param_to_hook_all_reduce is not None:
            raise NotImplementedError(
                "DistributedDataParallel: gradients that are averaged later are not there"
            )
        self.process_group = _group(_of_mesh(process_group, device_mesh))
        self.module = module
        left_out = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore = left_out
        named = [(name, p) for name, p in module.named_parameters() if name not in left_out]
        self._trained = [p for _, p in named if p.requires_grad]
        if not self._trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        self.modules_buffers = [b for name, b in module.named_buffers() if name not in left_out]
        self.device_ids, self.output_device = _devices(device_ids, output_device, named)
        self.device = self._trained[0].device
        first_too = broadcast_buffers is not False or forward_sync_buffers is not None
        self.dim = dim
        self.forward_sync_buffers = first_too if forward_sync_buffers is None else forward_sync_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view, self.mixed_precision = gradient_as_bucket_view, mixed_precision
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._hook: tuple[Any, Callable[..., Any]] | None = None
        self._join_config: Any = None
        self._by_all, self._divisor = True, 0
        if init_sync:
            _need_same(self.process_group, [p for _, p in named])
            broadcast_all(
                self.process_group, [p for _, p in named] + (self.modules_buffers if first_too else [])
            )
        caps = [bucket_cap_mb] if bucket_cap_mb_list is None else list(bucket_cap_mb_list)
        self._cap = _CAP if caps in ([], [None]) else float(max(caps))
        self._prepare()

    @property
    def broadcast_buffers(self) -> bool:
        """Whether each forward begins with the buffers of the first process, by the older name."""
        return self.forward_sync_buffers

    def _prepare(self) -> None:
        """Cut the parameters into buckets, and ask to be told of gradients."""
        self._buckets = buckets(self._trained, min(_FIRST, self._cap), self._cap)
        self._home = {id(p): bucket for bucket in self._buckets for p in bucket._parameters}
        self._expected: set[int] = set()
        self._running: list[tuple[GradBucket, Any]] = []
        self._seen: set[int] = set()
        self._told = self._begun = False
        self._handles = [p.register_post_accumulate_grad_hook(self._came) for p in self._trained]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for name in ("process_group", "_handles", "_running", "_buckets", "_home"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = _group(None)
        self._prepare()

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Any, params_and_buffers_to_ignore: Any) -> None:
        """Names of parameters and buffers that are left alone."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backwards of forwards in here add up gradients of this process alone; the next one outside averages all.

        Example:
            >>> with net.no_sync():  # doctest: +SKIP
            ...     net(first).sum().backward()
            >>> net(second).sum().backward()  # doctest: +SKIP
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Any:
        """Context in which processes may have different numbers of batches: those that are done answer the others.

        Args:
            divide_by_initial_world_size: Average over all processes; False averages over those that are not done.
            enable: False makes the context do nothing.
            throw_on_early_termination: Raise in all processes when one is done.

        Example:
            >>> with net.join():  # doctest: +SKIP
            ...     for batch in batches:
            ...         net(batch).sum().backward()
        """
        return self.process_group.join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    @property
    def join_device(self) -> Any:
        """Where parameters are."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    def join_hook(self, divide_by_initial_world_size: bool = True, **_: Any) -> Any:
        """What a process that is done does for others.

        Args:
            divide_by_initial_world_size: Average over all processes, not those alone that are not done.
        """
        self._by_all = divide_by_initial_world_size
        return _JoinHook(self)

    def _join_step(self, active: bool, syncs: bool) -> bool:
        """A step that processes take together some of which are done; whether gradients are averaged in it."""
        size = self.process_group.size()
        facts = tensor.zeros(size + 1)
        facts[self.process_group.rank()], facts[size] = float(active), float(syncs)
        self.process_group.allreduce([facts]).wait()
        running = [place for place in range(size) if float(facts[place]) > 0]
        self._divisor = size if self._by_all else len(running)
        if self.forward_sync_buffers and self.modules_buffers:
            broadcast_all(self.process_group, self.modules_buffers, running[-1])
        return float(facts[size]) > 0

    def register_comm_hook(self, state: object, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Lets a function average the gradients: it gets `state` and a `GradBucket`, and returns a future of a tensor.

        Raises:
            TypeError: The hook is no function. RuntimeError: There is one already.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook = (state, hook)

    def _set_static_graph(self) -> None:
        """The same parameters are used in every step."""
        self.static_graph = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What there is to say about it."""
        return {
            "module_name": type(self.module).__name__, "world_size": self.process_group.size(),
            "rank": self.process_group.rank(), "num_parameter_tensors": len(self._trained),
            "broadcast_buffers": int(self.forward_sync_buffers), "backend_name": self.process_group.name(),
            "find_unused_parameters": int(self.find_unused_parameters),
        }  # fmt: skip

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's result; brings its inputs to the GPU where one was given."""
        inputs, kwargs = self._pre_forward(*inputs, **kwargs)
        return self._post_forward(self._run_ddp_forward(*inputs, **kwargs))

    @property
    def _syncs(self) -> bool:
        """Whether the backward of this forward averages gradients."""
        return bool(tensor.is_grad_enabled() and self.require_backward_grad_sync)

    def _await_backward(self, syncs: bool) -> None:
        """The next backward averages gradients, of all parameters; or it leaves them as they are."""
        self._begun = syncs
        if syncs:
            self._seen.clear()
            self._expected = set(self._home)

    # PyTorch's names of the steps, which programs call and replace.

    @property
    def reducer(self) -> _Reducer:
        """Prepares a backward on its own, where the forward was one of `no_sync`."""
        return _Reducer(self)

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What is done before: buffers become those of the first process, inputs go to the device."""
        syncs = self._syncs
        joined = self._join_config is not None and self._join_config.enable and tensor.is_grad_enabled()
        if joined:
            self.process_group.notify(self)
            self._join_step(True, syncs)
        if syncs and self._begun and self._seen:
            raise RuntimeError(_UNFINISHED + self._missing())
        if (
            not joined
            and self.require_forward_param_sync
            and self.forward_sync_buffers
            and self.modules_buffers
        ):
            broadcast_all(self.process_group, self.modules_buffers)
        if self.device_ids:
            inputs, kwargs = _brought(inputs, self.device), _brought(kwargs, self.device)
        return inputs, kwargs

    def _run_ddp_forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    def _post_forward(self, output: Any) -> Any:
        """What is done after: the backward through the output will average gradients."""
        syncs = self._syncs
        self.require_forward_param_sync = syncs
        self._await_backward(syncs)
        if syncs and self.find_unused_parameters and not self.static_graph:
            self._leave_out_unused(_tensors(output))
        return output

    def _leave_out_unused(self, outputs: list[Tensor]) -> None:
        """Wait for no gradient of a parameter that these do not come from."""
        self._expected &= _reached(outputs)

    def _missing(self) -> str:
        names = [name for name, p in self.module.named_parameters() if id(p) in self._expected - self._seen]
        return f"Parameters without a gradient in process {self.process_group.rank()}: {', '.join(names)}"

    # While a backward runs

    def _came(self, parameter: Tensor) -> None:
        """A gradient is complete."""
        if not self._begun:
            return
        if not self._told:
            self._told = True
            autograd.Variable._execution_engine.queue_callback(self._end)
        self._seen.add(id(parameter))
        if not self.static_graph:
            self._launch(lambda p: id(p) in self._seen or id(p) not in self._expected)

    def _launch(self, ready: Callable[[Tensor], bool]) -> None:
        """Begin to average what is complete: in the same order in all processes."""
        while len(self._running) < len(self._buckets):
            bucket = self._buckets[len(self._running)]
            if not all(ready(parameter) for parameter in bucket._parameters):
                return
            bucket.fill()
            self._running.append((bucket, self._average(bucket)))

    def _average(self, bucket: GradBucket) -> Any:
        if self._hook is not None:
            return self._hook[1](self._hook[0], bucket)
        buffer = bucket.buffer()
        buffer /= self._divisor or self.process_group.size()
        return self.process_group.allreduce([buffer]).get_future()

    def _end(self) -> None:
        """The backward has ended: all averages are written back."""
        self._told = False
        if self.static_graph:
            self._launch(lambda p: True)
        if not self.static_graph and self._expected - self._seen:
            return  # the next forward says so
        self._launch(lambda p: True)
        used = self._used()
        for bucket, future in self._running:
            result = future.wait()
            bucket.spread(result[0] if isinstance(result, (list, tuple)) else result, used)
        self._running.clear()
        self._seen.clear()
        self._begun = False

    def _used(self) -> Callable[[Tensor], bool]:
        """Whether any process had a gradient of a parameter."""
        if not self.find_unused_parameters and not self.static_graph:
            return lambda parameter: True
        flags = tensor.tensor([int(id(p) in self._seen) for p in self._trained], dtype=tensor.int32)
        self.process_group.allreduce([flags]).wait()
        found = dict(zip(map(id, self._trained), flags.tolist(), strict=True))
        return lambda parameter: bool(found[id(parameter)])


class _Reducer:
    """What averages the gradients of a wrapped module."""

    def __init__(self, wrapped: DistributedDataParallel) -> None:
        self._wrapped = wrapped

    def prepare_for_backward(self, outputs: Sequence[Tensor]) -> None:
        """Let the next backward average gradients, whatever the forward was.

        Args:
            outputs: Tensors whose graph names the parameters that will have gradients; of none, all parameters have.
        """
        self._wrapped._await_backward(True)
        if outputs:
            self._wrapped._leave_out_unused(list(outputs))


class _JoinHook:
    """What a process that is done does for those that are not: everything with zeros."""

    def __init__(self, module: DistributedDataParallel) -> None:
        self._module = module

    def main_hook(self) -> None:
        """Answer one step of the others."""
        module = self._module
        if not module._join_step(False, False):
            return
        for bucket in module._buckets:
            bucket.fill()
            bucket.set_buffer(tensor.zeros_like(bucket.buffer()))
            module._average(bucket).wait()
        module._seen.clear()
        module._used()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Give all processes the parameters of one that was among the last."""
        module = self._module
        rank = module.process_group.rank()
        flags = tensor.zeros(module.process_group.size())
        flags[rank] = float(is_last_joiner)
        module.process_group.allreduce([flags]).wait()
        last = max(place for place, flag in enumerate(flags.tolist()) if flag)
        broadcast_all(module.process_group, [*module.module.parameters(), *module.modules_buffers], last)
        module._divisor = 0


class DistributedDataParallelCPU(DistributedDataParallel):
    """Deprecated name of `DistributedDataParallel`."""


def _of_mesh(group: Any, mesh: Any) -> Any:
    """The group that is given, or that of a mesh."""
    if mesh is None:
        return group
    if group is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if mesh.ndim != 1:
        raise RuntimeError(f"Only 1D device mesh is supported, but got {mesh}.")
    return mesh.get_group()


def _group(given: Any) -> Any:
    found = processes.default if given is None else given
    if found is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    return found


def _devices(ids: Sequence[Any] | None, output: Any, named: Sequence[tuple[str, Tensor]]) -> tuple[Any, Any]:
    places = {p.device for _, p in named}
    if not ids and output is None:
        return None, None
    if any(place.type == "cpu" for place in places) or len(places) > 1 or (ids and len(ids) > 1):
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-"
            f"device GPU modules or CPU modules, but got device_ids {ids}, output_device {output}, and module "
            f"parameters {places}."
        )
    return list(ids or ()), output if output is not None else (ids or [None])[0]


def _need_same(group: Any, parameters: Sequence[Tensor]) -> None:
    """Stop where the processes have different parameters."""
    text = repr([(tuple(p.shape), str(p.dtype)) for p in parameters])
    mine = tensor.tensor([len(parameters), zlib.crc32(text.encode())], dtype=tensor.int64)
    every = [tensor.zeros_like(mine) for _ in range(group.size())]
    group.allgather([every], [mine]).wait()
    for other, found in enumerate(every):
        if found.tolist() != mine.tolist():
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {group.rank()} has {len(parameters)} params, while "
                f"rank {other} has {'inconsistent ' if int(found[0]) != len(parameters) else ''}{int(found[0])} params"
                f"{'' if int(found[0]) != len(parameters) else ' of other shapes or dtypes'}."
            )


def _brought(value: Any, device: Any) -> Any:
    """Tensors on a device, also those in containers."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _brought(item, device) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_brought(item, device) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_brought(item, device) for item in value)
    return value


def _find_tensors(obj: Any) -> list[Tensor]:
    """The tensors of a result, under the name that wrappers of this class import."""
    return _tensors(obj)


def _tensors(value: Any) -> list[Tensor]:
    """All tensors of a result."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    elif is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in fields(value)]
    return [item for part in value for item in _tensors(part)] if isinstance(value, (list, tuple)) else []


def _reached(results: Sequence[Tensor]) -> set[int]:
    """The leaves, by identity, that gradients of these results reach."""
    waiting = [result.grad_fn for result in results if result.grad_fn is not None]
    found, seen = {id(result) for result in results}, set(waiting)
    while waiting:
        node = waiting.pop()
        if node.name().endswith("AccumulateGrad"):
            found.add(id(node.variable))
            continue
        following = {other for other, _ in node.next_functions if other is not None} - seen
        seen |= following
        waiting += following
    return found
