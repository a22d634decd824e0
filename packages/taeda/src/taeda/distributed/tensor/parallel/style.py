"""How the parameters, inputs and results of a layer lie over a mesh of one dimension."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import taeda as torch
from taeda import nn
from taeda.distributed.device_mesh import DeviceMesh
from taeda.distributed.tensor._api import DTensor, distribute_module, distribute_tensor
from taeda.distributed.tensor.placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel",
]  # fmt: skip


class ParallelStyle(ABC):
    """How a layer lies over a mesh; `_apply` makes it so."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        """The module, changed in place."""


def _spread(value: Any, mesh: DeviceMesh, now: Any, wanted: Any) -> Any:
    """A tensor, which lies as `now` unless it says so itself, as wanted."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, now)
    return value.redistribute(placements=wanted) if value.placements != tuple(wanted) else value


def _result(value: Any, wanted: Any, local: bool) -> Any:
    if value.placements != tuple(wanted):
        value = value.redistribute(placements=wanted)
    return value.to_local() if local else value


def _put(module: Any, mesh: DeviceMesh, source: int | None, **places: Placement) -> None:
    for name, value in list(module._parameters.items()):
        if value is not None:
            place = places.get(name, places.get("rest", Replicate()))
            made = distribute_tensor(value.data, mesh, [place], src_data_rank=source)
            module.register_parameter(name, nn.Parameter(made, requires_grad=value.requires_grad))


class ColwiseParallel(ParallelStyle):
    """A Linear layer cut by its results, or an Embedding cut by its columns.

    Args:
        input_layouts: How the input lies: all have it unless given.
        output_layouts: How the result lies: cut along its last dimension unless given.
        use_local_output: Give the part of this process in the place of a DTensor.

    Example:
        >>> parallelize_module(net, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__()
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output

    def _partition(self, name: str, module: Any, mesh: DeviceMesh) -> None:
        if isinstance(module, nn.Linear):
            _put(module, mesh, self.src_data_rank, rest=Shard(0))
        elif isinstance(module, nn.Embedding):
            _put(module, mesh, self.src_data_rank, rest=Shard(1))
        else:
            raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        return distribute_module(
            module, device_mesh, self._partition, partial(_first_input, self), partial(_only_result, self)
        )


class RowwiseParallel(ParallelStyle):
    """A Linear layer cut by its inputs, or an Embedding cut by its rows.

    Args:
        input_layouts: How the input lies: cut along its last dimension unless given.
        output_layouts: How the result lies: all have it unless given.
        use_local_output: Give the part of this process in the place of a DTensor.
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__()
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.desired_input_layouts: tuple[Placement, ...] = (Shard(-1),)
        self.use_local_output = use_local_output

    def _partition(self, name: str, module: Any, mesh: DeviceMesh) -> None:
        if isinstance(module, nn.Linear):
            _put(module, mesh, self.src_data_rank, weight=Shard(1))
        elif isinstance(module, nn.Embedding):
            _put(module, mesh, self.src_data_rank, weight=Shard(0))
        else:
            raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        if isinstance(module, nn.Embedding):
            self.desired_input_layouts = (Replicate(),)
        return distribute_module(
            module, device_mesh, self._partition, partial(_first_input, self), partial(_only_result, self)
        )


class SequenceParallel(ParallelStyle):
    """LayerNorm, RMSNorm or Dropout of inputs that are cut along the sequence.

    Args:
        sequence_dim: The dimension of the sequence.
        use_local_output: Give the part of this process in the place of a DTensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        super().__init__()
        self.sequence_sharding = (Shard(sequence_dim),)
        self.input_layouts = self.desired_input_layouts = self.output_layouts = self.sequence_sharding
        self.use_local_output = use_local_output

    def _partition(self, name: str, module: Any, mesh: DeviceMesh) -> None:
        for key, value in list(module._parameters.items()):
            if value is not None and not isinstance(value, DTensor):
                made = DTensor.from_local(value.detach(), mesh, [Replicate()]).detach()
                module.register_parameter(key, nn.Parameter(made, requires_grad=value.requires_grad))

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        return distribute_module(
            module, device_mesh, self._partition, partial(_first_input, self), partial(_only_result, self)
        )


def _first_input(style: Any, module: Any, inputs: Any, mesh: DeviceMesh) -> Any:
    return (_spread(inputs[0], mesh, style.input_layouts, style.desired_input_layouts), *inputs[1:])


def _only_result(style: Any, module: Any, result: Any, mesh: DeviceMesh) -> Any:
    wanted = tuple(
        Shard(p.dim + result.ndim) if isinstance(p, Shard) and p.dim < 0 else p for p in style.output_layouts
    )
    return _result(result, wanted, style.use_local_output)


def _listed(value: Any) -> Any:
    return value if value is None or isinstance(value, (tuple, list)) else (value,)


class PrepareModuleInput(ParallelStyle):
    """What the inputs of a module become before its forward.

    Args:
        input_layouts: How positional inputs lie; None leaves one alone.
        desired_input_layouts: How they shall lie.
        input_kwarg_layouts, desired_input_kwarg_layouts: The same for inputs by name.
        use_local_output: Give the part of this process in the place of a DTensor.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts, self.desired_input_layouts = (
            _listed(input_layouts),
            _listed(desired_input_layouts),
        )
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError(
                "input_kwarg_layouts and desired_input_kwarg_layouts should have same length!"
            )

    def _one(self, value: Any, mesh: DeviceMesh, now: Any, wanted: Any) -> Any:
        if now is None or not isinstance(value, torch.Tensor):
            return value
        made = _spread(value, mesh, (now,), _front((wanted if wanted is not None else now,), value))
        return made.to_local() if self.use_local_output else made

    def _inputs(self, inputs: Any, mesh: DeviceMesh) -> Any:
        if self.input_layouts is None:
            return inputs
        given = _listed(inputs)
        if len(given) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        return tuple(
            self._one(value, mesh, now, wanted)
            for value, now, wanted in zip(given, self.input_layouts, self.desired_input_layouts, strict=True)
        )

    def _by_name(self, kwargs: dict[str, Any], mesh: DeviceMesh) -> dict[str, Any]:
        return {
            key: self._one(
                value, mesh, self.input_kwarg_layouts.get(key), self.desired_input_kwarg_layouts.get(key)
            )
            for key, value in kwargs.items()
        }

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        def before(mod: Any, inputs: Any, kwargs: Any) -> Any:
            return self._inputs(inputs, device_mesh), self._by_name(kwargs, device_mesh)

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module


def _front(places: Sequence[Placement], value: Any) -> tuple[Placement, ...]:
    return tuple(Shard(p.dim + value.ndim) if isinstance(p, Shard) and p.dim < 0 else p for p in places)


class PrepareModuleOutput(ParallelStyle):
    """What the results of a module become after its forward.

    Args:
        output_layouts: How they lie; None leaves one alone.
        desired_output_layouts: How they shall lie.
        use_local_output: Give the part of this process in the place of a DTensor.
    """

    def __init__(
        self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True
    ) -> None:
        self.output_layouts, self.desired_output_layouts = (
            _listed(output_layouts),
            _listed(desired_output_layouts),
        )
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _outputs(self, outputs: Any, mesh: DeviceMesh) -> Any:
        given = _listed(outputs)
        if len(given) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        made = []
        for value, now, wanted in zip(given, self.output_layouts, self.desired_output_layouts, strict=True):
            if now is None:
                made.append(value)
                continue
            found = _spread(value, mesh, (now,), _front((wanted,), value))
            made.append(found.to_local() if self.use_local_output else found)
        return made[0] if given is not outputs else type(outputs)(made)

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        module.register_forward_hook(lambda mod, inputs, outputs: self._outputs(outputs, device_mesh))
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` at once.

    Args:
        use_local_input, use_local_output: Give the part of this process in the place of a DTensor.
        input_layouts, desired_input_layouts, input_kwarg_layouts, desired_input_kwarg_layouts, output_layouts,
            desired_output_layouts: As there.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: Any = None,
        desired_input_kwarg_layouts: Any = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts, desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )  # fmt: skip

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
