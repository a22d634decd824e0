"""`fully_shard`: parameters of a module as tensors cut along their first dimension, put together for forwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from taeda import nn
from taeda.distributed import _world
from taeda.distributed.device_mesh import DeviceMesh, init_device_mesh
from taeda.distributed.fsdp._units import Rows, Settings, Unit, cast, managed
from taeda.distributed.tensor._api import DTensor, distribute_tensor, part_of
from taeda.distributed.tensor.placement_types import Replicate, Shard

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method", "share_comm_ctx",
]  # fmt: skip


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of whole parameters, of sums of gradients, and of results.

    Args:
        param_dtype: Of parameters in forward and backward; None leaves theirs.
        reduce_dtype: In which gradients are added up; None for that of the gradients.
        output_dtype: Of floating-point results; None leaves theirs.
        cast_forward_inputs: Whether floating-point inputs become `param_dtype`.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters rest where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters rest in the host's memory, where those of the cpu are anyway.

    Args:
        pin_memory: Accepted for PyTorch's sake.
    """

    pin_memory: bool = True


class UnshardHandle:
    """What `FSDPModule.unshard` gives; everything is there already."""

    def wait(self) -> None:
        """Returns at once."""


class _State:
    """What a module needs to know about its unit."""

    def __init__(self, unit: Unit, mesh: DeviceMesh, policy: MixedPrecisionPolicy) -> None:
        self.unit, self.mesh, self.policy = unit, mesh, policy

    def gather(self) -> None:
        """Let whole parameters stand in the module; programs know them as parameters, though a graph leads to them."""
        if not self.unit.is_put:
            wholes = self.unit.gathered([self._part(entry) for entry in self.unit.entries])
            for whole in wholes:
                whole.__class__ = nn.Parameter
            self.unit.put(wholes)

    @staticmethod
    def _part(entry: Any) -> Any:
        module, name = entry.places[0]
        return part_of(module._parameters[name])

    def before(self, module: Any, args: Any, kwargs: Any) -> Any:
        if self.policy.cast_forward_inputs:
            args, kwargs = cast(args, self.policy.param_dtype), cast(kwargs, self.policy.param_dtype)
        self.gather()
        return args, kwargs

    def after(self, module: Any, args: Any, result: Any) -> Any:
        self.unit.restore()
        return cast(result, self.policy.output_dtype)


def _state(module: Any) -> _State | None:
    return vars(module).get("_fsdp_state")


class FSDPModule:
    """What a module becomes that was given to `fully_shard`, besides what it was."""

    _fsdp_state: _State

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # An instance of the class made anew is what it was before.
        plain = cls.__mro__[2]
        made = plain.__new__(plain)
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self) -> _State:
        return self._fsdp_state

    def _units(self, recurse: bool) -> Iterable[_State]:
        for part in self.modules() if recurse else [self]:  # type: ignore[attr-defined]
            state = _state(part)
            if state is not None:
                yield state

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Lets the whole parameters of this unit stand in the module."""
        self._fsdp_state.gather()
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Lets the parts stand in the module again."""
        self._fsdp_state.unit.restore()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backwards add gradients up over processes; others are kept back for the next that does."""
        for state in self._units(recurse):
            state.unit.settings.sync = requires_gradient_sync

    def set_gradient_divide_factor(self, factor: float) -> None:
        """By what sums of gradients are divided, in the place of the number of processes."""
        self._fsdp_state.unit.settings.divide = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether gradients are added up over copies: with `set_requires_gradient_sync`, as they always are."""
        self.set_requires_gradient_sync(requires_all_reduce, recurse=recurse)

    def _accepted(self, *args: Any, **kwargs: Any) -> None:
        """Accepted for PyTorch's sake: it changes when things are sent, not what is computed."""

    set_is_last_backward = set_reshard_after_forward = set_reshard_after_backward = _accepted
    set_modules_to_forward_prefetch = set_modules_to_backward_prefetch = _accepted
    set_custom_all_gather = set_custom_reduce_scatter = set_all_reduce_hook = _accepted
    set_post_optim_event = set_force_sum_reduction_for_comms = set_unshard_in_backward = _accepted
    set_allocate_memory_from_process_group_for_comm = set_symm_mem_for_comm = _accepted
    reset_iter_state = _set_unshard_async_op = _accepted


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set[Any] | None = None,
) -> Any:
    """Cuts the parameters of a module over processes, but those of modules in it that are cut already.

    The parameters become DTensors, cut along their first dimension; optimizers are made afterwards. A forward works
    with whole ones, a backward averages gradients over the processes and leaves each its part.

    Args:
        module: The module, changed in place, or a list of modules that are used together.
        mesh: One dimension of processes over which parameters are cut; of two, the first has copies. None for all.
        reshard_after_forward: Accepted: whole parameters are kept by the graph as long as a backward needs them.
        shard_placement_fn: Not there: only None, or a function that gives None or ``Shard(0)``.
        mp_policy: Dtypes of whole parameters, gradients and results.
        offload_policy: Where parameters rest.
        ignored_params: Parameters that are left alone.

    Raises:
        ValueError: The module is a container without a forward, or is cut already.

    References:
        Y. Zhao et al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel, VLDB 2023.

    Example:
        >>> for block in net.blocks:  # doctest: +SKIP
        ...     fully_shard(block)
        >>> fully_shard(net)  # doctest: +SKIP
    """
    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    for part in modules:
        if isinstance(part, (nn.ModuleList, nn.ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {part}")
        if _state(part) is not None:
            raise ValueError(f"fully_shard has been applied to {type(part).__name__} already")
    if mesh is None:
        if not _world.is_initialized():
            _world.init_process_group()
        mesh = init_device_mesh(_kind(modules), (_world.get_world_size(),))
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    policy = mp_policy or MixedPrecisionPolicy()
    ignored = {id(p) for p in ignored_params or ()}
    entries: list[Any] = []
    for number, part in enumerate(modules):
        found = managed(part, lambda child: _state(child) is not None, ignored)
        for entry, value in zip(found.entries, found.values, strict=True):
            _spread(entry, value, mesh, shard_placement_fn)
            if number:
                entry.name = f"{number}.{entry.name}"
        entries += found.entries
        ignored |= {id(m._parameters[name]) for e in found.entries for m, name in e.places}
    shards, copies = mesh.get_group(mesh.ndim - 1), mesh.get_group(0) if mesh.ndim == 2 else None
    settings = Settings(policy.param_dtype, policy.reduce_dtype)
    unit = Unit(entries, Rows(entries, shards.size()), shards, copies, settings)
    state = _State(unit, mesh, policy)
    for part in modules:
        part.__dict__["_fsdp_state"] = state
        part.register_forward_pre_hook(state.before, prepend=True, with_kwargs=True)
        part.register_forward_hook(state.after, always_call=False)
        part.__class__ = _class_of(type(part))
    return module


_classes: dict[type, type] = {}


def _class_of(cls: type) -> type:
    if cls not in _classes:
        _classes[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__})
    return _classes[cls]


def _kind(modules: Iterable[Any]) -> str:
    for part in modules:
        for value in part.parameters():
            return "cpu" if value.device.type == "meta" else str(value.device.type)
    return "cpu"


def _spread(entry: Any, value: Any, mesh: DeviceMesh, placement: Any) -> None:
    """Let a cut parameter stand in the places of a whole one."""
    if isinstance(value, DTensor):
        raise NotImplementedError(
            f"fully_shard: parameter '{entry.name}' lies over a mesh already; tensor parallelism below is not there"
        )
    chosen = None if placement is None else placement(value)
    if chosen not in (None, Shard(0)):
        raise NotImplementedError(f"fully_shard: parameters are cut along dimension 0, found {chosen}")
    if not value.dim():
        raise ValueError(
            f"fully_shard doesn't support scalar parameters. Change {entry.name} to a 1D tensor with numel equal to 1."
        )
    places = [Shard(0)] if mesh.ndim == 1 else [Replicate(), Shard(0)]
    made = distribute_tensor(value.detach(), mesh, places, src_data_rank=None)
    made = nn.Parameter(made, requires_grad=value.requires_grad)
    made.__dict__.update({k: v for k, v in vars(value).items() if k not in ("_spec", "_is_param")})
    for module, name in entry.places:
        module._parameters[name] = made


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Lets another method of a module that was given to `fully_shard` work with whole parameters, as its forward does.

    Raises:
        ValueError: The module has no such method.
    """
    state = _state(module)
    if state is None:
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)

    def whole(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before(module, args, kwargs)
        try:
            return cast(method(*args, **kwargs), state.policy.output_dtype)
        finally:
            state.unit.restore()

    object.__setattr__(module, method_name, whole)


def share_comm_ctx(modules: list[Any]) -> None:
    """Accepted for PyTorch's sake."""
