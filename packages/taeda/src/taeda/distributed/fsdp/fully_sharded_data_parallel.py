"""FullyShardedDataParallel: a module whose parameters are flattened and cut over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import taeda as torch
from taeda import nn
from taeda.distributed import _world
from taeda.distributed.fsdp import _states
from taeda.distributed.fsdp._units import Flat, Found, Settings, Unit, cast, managed
from taeda.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FlatParameter", "FullyShardedDataParallel", "OptimStateDictConfig",
    "StateDictConfig",
]  # fmt: skip

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FLAT_PARAM = "_flat_param"
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_CONFIGS = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


class FlatParameter(nn.Parameter):
    """This process's part of all parameters of a unit, in one dimension."""


class FullyShardedDataParallel(nn.Module):
    """A module that several processes train together: each keeps a part of its parameters, gradients and states.

    Parameters become whole for a forward; a backward averages gradients over the processes and leaves each its part.
    Optimizers are made afterwards.

    Args:
        module: The module, changed in place.
        process_group: The processes; None for all; with hybrid strategies two groups: of parts, and of copies.
        sharding_strategy: What is cut; NO_SHARD keeps copies in all processes. What is computed is the same.
        auto_wrap_policy: Which modules in it become units of their own: a rule of `fsdp.wrap`.
        mixed_precision: Dtypes of whole parameters, of sums of gradients and of buffers.
        ignored_modules, ignored_states: Modules and parameters that are left alone.
        param_init_fn: Called with modules that have parameters without memory.
        device_id: The device to which the module is brought.
        sync_module_states: Begin with the parameters and buffers of the first process.
        use_orig_params: Let parameters have their names, each with the elements that this process has.
        device_mesh: A mesh in the place of `process_group`.
        cpu_offload, backward_prefetch, forward_prefetch, limit_all_gathers: Accepted for PyTorch's sake.

    Raises:
        ValueError: There is no group of processes, or parameters of several dtypes are in one unit.

    References:
        Y. Zhao et al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel, VLDB 2023.

    Example:
        >>> net = FullyShardedDataParallel(net, use_orig_params=True)  # doctest: +SKIP
        >>> optimizer = taeda.optim.Adam(net.parameters())  # doctest: +SKIP
    """

    def __init__(
        self,
        module: Any,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: Any = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: Any = None,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Any] | None = None,
        param_init_fn: Callable[[Any], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        ignored, left = _ignored(ignored_modules, ignored_states)
        shards, copies = _groups(process_group, strategy, device_mesh)
        if auto_wrap_policy is not None:
            own = {
                "process_group": process_group, "sharding_strategy": strategy, "mixed_precision": mixed_precision,
                "param_init_fn": param_init_fn, "device_id": device_id, "sync_module_states": sync_module_states,
                "use_orig_params": use_orig_params, "ignored_states": ignored_states, "device_mesh": device_mesh,
                "ignored_modules": ignored_modules,
            }  # fmt: skip
            from taeda.distributed.fsdp.wrap import wrap_parts

            wrap_parts(module, auto_wrap_policy, type(self), own, left)
        _materialised(module, param_init_fn, device_id)
        self.sharding_strategy, self.mixed_precision = strategy, mixed_precision or MixedPrecision()
        self.cpu_offload, self.backward_prefetch = cpu_offload, backward_prefetch
        self.process_group, self._copies = shards, copies
        self._use_orig_params = use_orig_params
        self.compute_device = torch.device("cpu" if device_id is None else device_id)
        self._state_dict_type = StateDictType.FULL_STATE_DICT
        self._state_dict_config: Any = FullStateDictConfig()
        self._optim_state_dict_config: Any = FullOptimStateDictConfig()
        found = managed(
            module, lambda child: isinstance(child, FullyShardedDataParallel) or child in left, ignored
        )
        if sync_module_states:
            _same_everywhere(found.values, module, left)
        for buffer_home in module.modules():
            for name, buffer in buffer_home._buffers.items():
                wanted = self.mixed_precision.buffer_dtype
                if buffer is not None and wanted is not None and buffer.is_floating_point():
                    buffer_home._buffers[name] = buffer.to(wanted)
        setattr(self, FSDP_WRAPPED_MODULE, module)
        self._cut(found, shards, copies)
        self._comm_hook: Any = None
        _states.register(self)

    def _cut(self, found: Found, shards: Any, copies: Any) -> None:
        """Let the parts of parameters stand in their place."""
        kinds = {value.dtype for value in found.values}
        if len(kinds) > 1:
            raise ValueError(
                f"Must flatten tensors with uniform dtype but got {' and '.join(map(str, kinds))}"
            )
        wanting = {value.requires_grad for value in found.values}
        if len(wanting) > 1 and not self._use_orig_params:
            raise ValueError(
                "Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`. Try using "
                "`use_orig_params=True` if you want to use non-uniform `requires_grad`."
            )
        layout = Flat(found.entries, shards.size() if shards is not None else 1)
        rounding = Settings(self.mixed_precision.param_dtype, self.mixed_precision.reduce_dtype)
        self._unit = Unit(found.entries, layout, shards, copies, rounding)
        pieces = self._pieces([value.detach() for value in found.values])
        inner = self._modules[FSDP_WRAPPED_MODULE]
        self._parts: list[Any] = []
        if self._use_orig_params:
            for entry, piece, value in zip(found.entries, pieces, found.values, strict=True):
                made = nn.Parameter(piece.clone(), requires_grad=value.requires_grad)
                made.__dict__.update(vars(value))
                self._parts.append(made)
                for home, name in entry.places:
                    home._parameters[name] = made
            return
        for entry in found.entries:
            for home, name in entry.places:
                del home._parameters[name]
        if found.entries:
            whole = layout.pack(pieces)
            made = FlatParameter(whole, requires_grad=found.values[0].requires_grad)
            self._parts = [made]
            inner.register_parameter(FLAT_PARAM, made)

    def _rank(self) -> int:
        return 0 if self._unit.shards is None else int(self._unit.shards.rank())

    def _pieces(self, wholes: list[Any]) -> list[Any]:
        """This process's elements of whole tensors."""
        spans = self._unit.layout.spans(self._rank())
        return [w.reshape(-1)[start : start + n] for w, (start, n) in zip(wholes, spans, strict=True)]

    @property
    def _flat_param(self) -> Any:
        return None if self._use_orig_params or not self._parts else self._parts[0]

    def _current(self) -> list[Any]:
        """The parameters as they stand in the modules now."""
        if self._use_orig_params:
            before = {(id(m), n): v for m, n, v in self._unit._before or ()}
            return [
                before.get(
                    (id(e.places[0][0]), e.places[0][1]), e.places[0][0]._parameters.get(e.places[0][1])
                )
                for e in self._unit.entries
            ]
        return [self._modules[FSDP_WRAPPED_MODULE]._parameters[FLAT_PARAM]] if self._unit.entries else []

    # The wrapped module

    @property
    def module(self) -> Any:
        """The wrapped module."""
        inner = self._modules[FSDP_WRAPPED_MODULE]
        return getattr(inner, "_checkpoint_wrapped_module", inner)

    @property
    def _has_params(self) -> bool:
        return bool(self._unit.entries)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == FSDP_WRAPPED_MODULE:
                raise
            return getattr(super().__getattr__(FSDP_WRAPPED_MODULE), name)

    def __getitem__(self, key: int) -> Any:
        return self._modules[FSDP_WRAPPED_MODULE][key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result, with whole parameters."""
        unit, rounding = self._unit, self.mixed_precision
        outer = _forwards[0] == 0
        if rounding.cast_forward_inputs or (outer and rounding.cast_root_forward_inputs):
            args, kwargs = cast(args, rounding.param_dtype), cast(kwargs, rounding.param_dtype)
        _forwards[0] += 1
        try:
            with unit.standing(unit.gathered(self._current()) if not unit.is_put else []):
                return self._modules[FSDP_WRAPPED_MODULE](*args, **kwargs)
        finally:
            _forwards[0] -= 1

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Names and parameters; while parameters are whole, by the names they had."""
        clean = self._unit.is_put
        for name, value in super().named_parameters(*args, **kwargs):
            yield (_states.clean(name) if clean else name), value

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Names and buffers."""
        clean = self._unit.is_put
        for name, value in super().named_buffers(*args, **kwargs):
            yield (_states.clean(name) if clean else name), value

    def apply(self, fn: Callable[[Any], None]) -> Any:
        """Applies a function to all modules, with whole parameters, whose changes stay."""
        with self.summon_full_params(self):
            return super().apply(fn)

    # Units

    @staticmethod
    def fsdp_modules(module: Any, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The units in a module, or only the outermost ones."""
        every = [part for part in module.modules() if isinstance(part, FullyShardedDataParallel)]
        if not root_only:
            return every
        inside = {id(inner) for unit in every for inner in unit.modules() if inner is not unit}
        return [unit for unit in every if id(unit) not in inside]

    def check_is_root(self) -> bool:
        """Whether it was called as the outermost unit: True of one that no other is known to hold."""
        return True

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backwards in here keep gradients of this process back; the next one outside adds them up over all."""
        units = self.fsdp_modules(self)
        before = [unit._unit.settings.sync for unit in units]
        for unit in units:
            unit._unit.settings.sync = False
        try:
            yield
        finally:
            for unit, sync in zip(units, before, strict=True):
                unit._unit.settings.sync = sync

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scales the gradients of all processes so that the norm of all together is at most `max_norm`; that norm.

        Args:
            max_norm: The largest norm.
            norm_type: The kind of norm; infinity for the largest element.
        """
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        power = float(norm_type)
        dtype = gradients[0].dtype if gradients else torch.float32
        norms = [torch.linalg.vector_norm(g.float(), power) for g in gradients if g.numel()]
        group = self.process_group if self.process_group is not None else None
        if power == float("inf"):
            total = torch.stack(norms).amax() if norms else torch.zeros(())
            if group is not None:
                group.allreduce([total], torch.distributed.ReduceOp.MAX, later=False)
        else:
            total = (torch.stack(norms) ** power).sum() if norms else torch.zeros(())
            if group is not None:
                group.allreduce([total], torch.distributed.ReduceOp.SUM, later=False)
            total = total ** (1 / power)
        scale = torch.clamp(max_norm / (total + 1e-6), max=1.0)
        with torch.no_grad():
            for gradient in gradients:
                gradient.mul_(scale.to(gradient.dtype))
        return total.to(dtype)

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Any,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Context in which parameters are whole, by their names.

        Args:
            module: The module.
            recurse: All units in it, not only its own.
            writeback: Keep changes; each process those of its part.
            rank0_only, offload_to_cpu: Accepted: all processes have whole parameters.
            with_grads: Whole gradients too; needs `use_orig_params`.
        """
        units = FullyShardedDataParallel.fsdp_modules(module)
        if not recurse:
            units = [unit for unit in units if unit is module]
        opened = []
        try:
            for unit in units:
                opened.append((unit, _states.open_unit(unit, with_grads)))
            yield
        finally:
            for unit, wholes in reversed(opened):
                _states.close_unit(unit, wholes, writeback)

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Functions that average gradients: not there.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "FullyShardedDataParallel.register_comm_hook: gradients are averaged as they are"
        )

    # States

    @staticmethod
    def set_state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> StateDictSettings:
        """Says what `state_dict` gives: whole tensors, parts of all, or this process's part.

        Returns: what it was before.
        """
        before = FullyShardedDataParallel.get_state_dict_type(module)
        plain, optim = _CONFIGS[state_dict_type]
        config, other = state_dict_config or plain(), optim_state_dict_config or optim()
        if not isinstance(config, plain) or not isinstance(other, optim):
            raise RuntimeError(
                f"Expected state_dict_config of type {plain} and optim_state_dict_config of type {optim}, but got "
                f"{type(config)} and {type(other)}"
            )
        for unit in FullyShardedDataParallel.fsdp_modules(module):
            unit._state_dict_type, unit._state_dict_config = state_dict_type, config
            unit._optim_state_dict_config = other
        return before

    @staticmethod
    def get_state_dict_type(module: Any) -> StateDictSettings:
        """What `state_dict` gives, with its settings."""
        for unit in FullyShardedDataParallel.fsdp_modules(module):
            return StateDictSettings(
                unit._state_dict_type, unit._state_dict_config, unit._optim_state_dict_config
            )
        return StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> Iterator[None]:
        """`set_state_dict_type` for a while."""
        cls = FullyShardedDataParallel
        before = cls.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            cls.set_state_dict_type(
                module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config
            )

    @staticmethod
    def optim_state_dict(
        model: Any, optim: Any, optim_state_dict: Any = None, group: Any = None
    ) -> dict[str, Any]:
        """The state of an optimizer by names of parameters, of whole tensors or of parts as `state_dict_type` says."""
        return _states.optim_state(model, optim, optim_state_dict)

    @staticmethod
    def full_optim_state_dict(
        model: Any, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """The state of an optimizer by names of parameters, of whole tensors; of the first process only."""
        found = _states.optim_state(model, optim, None, full=True)
        return found if not rank0_only or _world.get_rank() == 0 else {}

    @staticmethod
    def sharded_optim_state_dict(model: Any, optim: Any, group: Any = None) -> dict[str, Any]:
        """The state of an optimizer by names of parameters, of parts."""
        return _states.optim_state(model, optim, None, full=False)

    @staticmethod
    def optim_state_dict_to_load(
        model: Any,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """What an optimizer of this process loads, of what `optim_state_dict` gave.

        Args:
            load_directly: Load it, too.
        """
        found = _states.optim_state_to_load(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any], model: Any, optim_input: Any = None, optim: Any = None
    ) -> dict[str, Any]:
        """What an optimizer of this process loads, of a state of whole tensors."""
        return _states.optim_state_to_load(model, optim, full_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any] | None,
        model: Any,
        optim_input: Any = None,
        optim: Any = None,
        group: Any = None,
    ) -> dict[str, Any]:
        """What an optimizer of this process loads, of a state of whole tensors that the first process has."""
        box = [full_optim_state_dict]
        torch.distributed.broadcast_object_list(box, 0, group)
        return _states.optim_state_to_load(model, optim, box[0] or {})

    @staticmethod
    def flatten_sharded_optim_state_dict(
        sharded_optim_state_dict: dict[str, Any], model: Any, optim: Any
    ) -> dict[str, Any]:
        """What an optimizer of this process loads, of a state of parts."""
        return _states.optim_state_to_load(model, optim, sharded_optim_state_dict)

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any], optim_state_key_type: Any, model: Any, optim_input: Any = None,
        optim: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The state of an optimizer with names of parameters in the place of numbers, or the other way round."""
        return _states.rekeyed(optim_state_dict, optim_state_key_type, model)


# How many forwards of units are running, one within the other.
_forwards = [0]


def _ignored(modules: Any, states: Any) -> tuple[set[int], set[Any]]:
    """Parameters, by identity, and modules that are left alone."""
    left, found = set(modules or ()), set()
    for item in states or ():
        left.add(item) if isinstance(item, nn.Module) else found.add(id(item))
    for module in left:
        found |= {id(p) for p in module.parameters()}
    return found, left


def _groups(given: Any, strategy: ShardingStrategy, mesh: Any) -> tuple[Any, Any]:
    """The processes over which parameters are cut, and those that have copies."""
    if mesh is not None:
        shards, copies = mesh.get_group(mesh.ndim - 1), mesh.get_group(0) if mesh.ndim == 2 else None
    elif isinstance(given, (tuple, list)):
        shards, copies = given
    elif strategy in _HYBRID and given is None:
        shards, copies = _world.default_group(), None
    else:
        shards, copies = given or _world.default_group(), None
    return (None, shards) if strategy is ShardingStrategy.NO_SHARD else (shards, copies)


def _materialised(module: Any, init: Callable[[Any], None] | None, device: Any) -> None:
    """Give parameters without memory theirs, and bring the module to a device."""
    for part in module.modules():
        own = [*part._parameters.values(), *part._buffers.values()]
        if any(value is not None and value.is_meta for value in own):
            if init is not None:
                init(part)
            else:
                part.to_empty(device="cpu" if device is None else device, recurse=False)
                part.reset_parameters()
    if device is not None and torch.device(device).type != "cpu":
        module.to(device)


def _same_everywhere(values: list[Any], module: Any, left: set[Any]) -> None:
    group = _world.default_group()
    buffers = [
        b for part in module.modules() if part not in left for b in part._buffers.values() if b is not None
    ]
    with torch.no_grad():
        for value in [*values, *buffers]:
            data = value.detach().contiguous()
            group.broadcast([data], 0, later=False)
            value.detach().copy_(data)
