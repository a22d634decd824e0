"""A module whose batches are cut into a part for each device of this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_nn._bind import Tensor, tensor
from taeda_nn.modules.module import Module

_accelerator: Any = getattr(tensor, "accelerator", None)


def _place(device: Any) -> Any:
    """A device; numbers count accelerators."""
    if isinstance(device, int):
        current = _accelerator.current_accelerator() if _accelerator is not None else None
        if current is None:
            raise RuntimeError(f"data_parallel: there is no device {device}: no accelerator is present")
        return tensor.device(current.type, device)
    return tensor.empty(0, device=device).device  # as tensors say it: with a number where there are several


def _devices(asked: Sequence[Any] | None) -> list[Any]:
    """The devices that are asked for, all accelerators by default; none where there is no accelerator to ask for."""
    there = _accelerator is not None and _accelerator.is_available()
    if asked is None:
        return [_place(i) for i in range(_accelerator.device_count())] if there else []
    if not there and not all(str(device).partition(":")[0] == "cpu" for device in asked):
        return []
    return [_place(device) for device in asked]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Cuts tensors, also those inside of containers, along ``dim`` into a part for each device; other values go whole.

    Returns: one structure for each device.
    """
    places = [_place(device) for device in target_gpus]
    if isinstance(inputs, Tensor):
        parts = inputs.chunk(len(places), dim)
        return tuple(part.to(device=place) for part, place in zip(parts, places, strict=False))
    if isinstance(inputs, (tuple, list)) and inputs:
        columns = list(zip(*(scatter(item, places, dim) for item in inputs), strict=False))
        if hasattr(inputs, "_fields"):
            return [type(inputs)(*column) for column in columns]
        return [type(inputs)(column) for column in columns]
    if isinstance(inputs, dict) and inputs:
        rows = zip(*(scatter(item, places, dim) for item in inputs.items()), strict=False)
        return [type(inputs)(row) for row in rows]
    return [inputs for _ in places]


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Joins the structures that the devices gave along ``dim`` on one device: what `scatter` cut."""
    first = outputs[0]
    place = _place(target_device)
    if isinstance(first, Tensor):
        parts = [part.to(device=place) for part in outputs]
        return tensor.stack(parts) if all(part.dim() == 0 for part in parts) else tensor.cat(parts, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(part) == len(first) for part in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([part[key] for part in outputs], place, dim)) for key in first)
    joined = [gather(column, place, dim) for column in zip(*outputs, strict=True)]
    return type(first)(*joined) if hasattr(first, "_fields") else type(first)(joined)


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """The network for each device: itself where it already is, copies whose parameters follow the original's."""
    from copy import copy

    def on(module: Module, place: Any) -> Any:
        replica = copy(module)
        values = replica.__dict__
        for name in ("_parameter_names", "_buffer_names", "_module_names"):
            values[name] = dict(values[name])
        for name in (*values["_parameter_names"], *values["_buffer_names"]):
            value = values[name]
            if value is not None:
                values[name] = (value.detach() if detach else value).to(device=place)
        for name in values["_module_names"]:
            if values[name] is not None:
                values[name] = on(values[name], place)
        return replica

    return [on(network, _place(device)) for device in devices]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Calls every module with its inputs; devices compute at once, since their work is only enqueued here."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
        )
    options = [{} for _ in modules] if kwargs_tup is None else kwargs_tup
    results = []
    for module, args, kwargs in zip(modules, inputs, options, strict=True):
        results.append(module(*(args if isinstance(args, (tuple, list)) else (args,)), **kwargs))
    return results


class DataParallel(Module):
    """A module whose batches are shared out among the devices of this process; with one device it is simply called.

    Args:
        module: The module.
        device_ids: The devices, by default all accelerators. Where there is no accelerator, their numbers are
            passed over: the module is simply called.
        output_device: Where results are joined, by default the first device.
        dim: The dimension of the batch.

    Attributes:
        module: The module that was given.

    Example:
        >>> net = nn.DataParallel(model)
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        devices = _devices(device_ids)
        self.module = module
        self.dim = dim
        self.device_ids = devices
        if devices:
            self.output_device = devices[0] if output_device is None else _place(output_device)
            self.src_device_obj = devices[0]
            if len(devices) == 1:
                module.to(devices[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if len(self.device_ids) < 2:
            return self.module(*inputs, **kwargs)
        for value in (*self.module.parameters(), *self.module.buffers()):
            if value.device != self.src_device_obj:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.src_device_obj} (device_ids[0]) "
                    f"but found one of them on device: {value.device}"
                )
        parts, options = self.scatter(inputs, kwargs, self.device_ids)
        if len(parts) == 1:
            return self.module(*parts[0], **options[0])
        replicas = self.replicate(self.module, self.device_ids[: len(parts)])
        return self.gather(self.parallel_apply(replicas, parts, options), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Any]:
        """See `replicate`."""
        return replicate(module, device_ids)

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Any) -> Any:
        """See `scatter`: positional and keyword arguments for each device."""
        parts = list(scatter(inputs, device_ids, self.dim)) if inputs else []
        options = list(scatter(kwargs, device_ids, self.dim)) if kwargs else []
        count = max(len(parts), len(options), 1)
        parts += [()] * (count - len(parts))
        options += [{}] * (count - len(options))
        return parts, options

    def parallel_apply(self, replicas: Sequence[Any], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """See `parallel_apply`."""
        return parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """See `gather`."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Calls a module with its batch shared out among devices; see `DataParallel`."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,) if inputs is not None else ()
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
