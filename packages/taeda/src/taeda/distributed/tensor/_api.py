"""DTensor: a tensor of which each process has a part."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import taeda as torch
from taeda.distributed.device_mesh import DeviceMesh, _mesh_resources
from taeda.distributed.tensor import _moves
from taeda.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from taeda.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

_plain = torch.overrides.DisableTorchFunctionSubclass
# What is asked of the tensor itself, or done with it: not of its elements.
_ITSELF = frozenset({
    "requires_grad_", "retain_grad", "backward", "detach_", "register_hook", "register_post_accumulate_grad_hook",
    "_version", "is_floating_point", "is_complex", "is_signed", "element_size", "get_device", "data_ptr",
    "is_inference", "is_shared", "is_pinned", "storage_offset", "is_contiguous", "type", "untyped_storage", "is_conj",
    "is_neg", "share_memory_", "get_layout", "is_same_size", "_is_view", "zero_grad", "pin_memory",
    "_has_compatible_shallow_copy_type", "__hash__",
})  # fmt: skip
# What reads elements.
_READING = torch.overrides.READS | {"__format__", "__iter__"}
_may_mix = [False]


class DTensor(torch.Tensor):
    """A tensor that lies over the processes of a mesh: its shape is that of the whole, its memory that of this part.

    Made by `distribute_tensor` and `DTensor.from_local`. Functions of tensors take it; they say by rules how the result
    lies, and where there is none compute with the whole in all processes.

    Example:
        >>> mesh = init_device_mesh("cpu", (2,))  # doctest: +SKIP
        >>> x = distribute_tensor(taeda.arange(4.0), mesh, [Shard(0)])  # doctest: +SKIP
        >>> x.to_local(), x.sum().full_tensor()  # doctest: +SKIP
    """

    _spec: DTensorSpec

    def __new__(cls, local_tensor: Any, spec: DTensorSpec, *, requires_grad: bool = False) -> DTensor:
        made: DTensor = torch.Tensor._make_subclass(cls, local_tensor.detach(), requires_grad)
        made.__dict__["_spec"] = spec
        return made

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _call(func, args, kwargs or {})

    # What it is

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies, for each dimension of the mesh."""
        return self._spec.placements

    @property
    def shape(self) -> Any:
        return torch.Size(self._spec.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape of the whole, or one of its sizes."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """The strides of the whole, or one of them."""
        strides = self._spec.stride
        return strides if dim is None else strides[dim]

    @property
    def ndim(self) -> int:
        return len(self._spec.shape)

    def dim(self) -> int:
        """How many dimensions it has."""
        return len(self._spec.shape)

    ndimension = dim

    def numel(self) -> int:
        """How many elements the whole has."""
        return math.prod(self._spec.shape)

    nelement = numel

    def __len__(self) -> int:
        if not self._spec.shape:
            raise TypeError("len() of a 0-d tensor")
        return self._spec.shape[0]

    @property
    def _local_tensor(self) -> Any:
        return part_of(self)

    @_local_tensor.setter
    def _local_tensor(self, value: Any) -> None:
        with _plain():
            torch.Tensor.data.__set__(self, value)

    @property
    def data(self) -> DTensor:
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        spec = value._spec if isinstance(value, DTensor) else None
        local = part_of(value).detach() if isinstance(value, DTensor) else value
        with _plain():
            torch.Tensor.data.__set__(self, local)
        if spec is not None:
            self.__dict__["_spec"] = spec

    @property
    def grad(self) -> Any:
        with _plain():
            found = torch.Tensor.grad.__get__(self)
        if found is None or isinstance(found, DTensor):
            return found
        kept = self.__dict__.get("_grad_shown")
        if kept is not None and kept[0] is found:
            return kept[1]
        shown = DTensor(found, self._spec.with_placements(_of_gradient(self.placements)))
        self.__dict__["_grad_shown"] = (found, shown)
        return shown

    @grad.setter
    def grad(self, value: Any) -> None:
        if isinstance(value, DTensor):
            value = part_of(value.redistribute(placements=_of_gradient(self.placements))).detach()
        self.__dict__.pop("_grad_shown", None)
        with _plain():
            torch.Tensor.grad.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return (
            f"DTensor(local_tensor={part_of(self).detach()!r}, device_mesh={self.device_mesh}, "
            f"placements={self.placements})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> DTensor:
        if id(self) in memo:
            return memo[id(self)]
        made = DTensor(part_of(self).detach().clone(), self._spec, requires_grad=self.requires_grad)
        for name, value in self.__dict__.items():
            if name not in ("_spec", "_grad_shown"):
                made.__dict__[name] = value
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuilt, (part_of(self).detach(), self._spec, self.requires_grad)

    # How it lies

    @staticmethod
    def from_local(
        local_tensor: Any,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
        grad_placements: Any = None,
    ) -> DTensor:
        """The tensor whose part in this process is given; gradients flow through.

        Args:
            local_tensor: The part of this process.
            device_mesh: The mesh; None for the one in force.
            placements: How the whole lies; all have it unless given.
            run_check: Give all processes the parts of the first where all should have them.
            shape, stride: Of the whole. Unless given, all parts are taken to be as large as this one.

        Raises:
            ValueError: A dimension that is cut twice unevenly, or one that is not there.
        """
        if not isinstance(local_tensor, torch.Tensor):
            raise ValueError(f"DTensor.from_local: expected a Tensor, found {type(local_tensor).__name__}")
        mesh = device_mesh or _mesh_resources.get_current_mesh()
        places = _settled(placements, mesh, local_tensor.dim())
        whole = list(local_tensor.shape)
        for dim, placement in enumerate(places):
            if isinstance(placement, Shard):
                whole[placement.dim] *= mesh.shape[dim]
        whole = list(whole if shape is None else shape)
        if run_check:
            with torch.no_grad():
                for dim, placement in enumerate(places):
                    if isinstance(placement, Replicate):
                        mesh.get_group(dim).broadcast([local_tensor], 0, later=False)
        return dressed(local_tensor.view_as(local_tensor), mesh, places, whole, stride)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Any:
        """The part of this process; gradients flow through.

        Args:
            grad_placements: How the gradient lies that comes back; as the tensor unless given.
        """
        local = part_of(self)
        if not torch.is_grad_enabled() or not local.requires_grad:
            return local.detach()
        for dim, (own, given) in enumerate(
            zip(self.placements, grad_placements or self.placements, strict=True)
        ):
            if isinstance(given, Partial) and isinstance(own, Replicate):
                local = _moves.summed(local, self.device_mesh.get_group(dim))
        return local.view_as(local)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor, lying as `placements` say; gradients flow back into how it lies now.

        Raises:
            RuntimeError: No placements are given. ValueError: They do not fit the tensor or the mesh.
        """
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        mesh = device_mesh or self.device_mesh
        if mesh != self.device_mesh:
            raise NotImplementedError("DTensor.redistribute: cross device mesh comm not supported yet!")
        places = _settled(placements, mesh, self.ndim)
        for own, wanted in zip(self.placements, places, strict=True):
            if isinstance(wanted, Partial) and own != wanted:
                raise RuntimeError(
                    f"Can not redistribute from {own} to {wanted}, redistributing to Partial is for internal use only!"
                )
        local = part_of(self)
        if forward_dtype is not None:
            local = local.to(forward_dtype)
        moved = _moves.redistribute(local, self._spec.shape, mesh, self.placements, places)
        return dressed(moved, mesh, places, self._spec.shape, self._spec.stride)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Any:
        """The whole, in every process; gradients flow through.

        Args:
            grad_placements: How the gradient lies that comes back: had by all unless given.
        """
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    def detach(self) -> DTensor:
        """The same memory without a history."""
        return DTensor(part_of(self), self._spec)

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Calls a function with the gradient, a DTensor."""
        spec = self._spec.with_placements(_of_gradient(self.placements))

        def plain(gradient: Any) -> Any:
            made = hook(None if gradient is None else DTensor(gradient, spec))
            return (
                part_of(made.redistribute(placements=spec.placements)) if isinstance(made, DTensor) else made
            )

        with _plain():
            return torch.Tensor.register_hook(self, plain)

    def __create_write_items__(self, fqn: str, object: Any) -> Any:
        """What a checkpoint writes of it in this process."""
        from taeda.distributed.checkpoint import planner_helpers

        return planner_helpers.items_of_dtensor(fqn, object)


def _of_gradient(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """How a gradient lies: that of summands, whose sum is meant, is had by all."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)


def _rebuilt(local: Any, spec: DTensorSpec, requires_grad: bool) -> DTensor:
    return DTensor(local, spec, requires_grad=requires_grad)


def part_of(value: Any) -> Any:
    """The part of this process of a DTensor, within the same graph."""
    with _plain():
        return value.as_subclass(torch.Tensor)


def dressed(
    local: Any, mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int], stride: Any = None
) -> DTensor:
    """A DTensor within the graph of its part."""
    with _plain():
        made: DTensor = local.as_subclass(DTensor)
    if made is local:
        made = local.view_as(local).as_subclass(DTensor)
    made.__dict__["_spec"] = DTensorSpec(
        mesh, tuple(placements), TensorMeta(tuple(shape), _strides(shape, stride), local.dtype)
    )
    return made


def _strides(shape: Sequence[int], given: Any) -> tuple[int, ...]:
    if given is not None:
        return tuple(given)
    found = [1]
    for size in reversed(list(shape)[1:]):
        found.append(found[-1] * max(size, 1))
    return tuple(reversed(found)) if len(shape) else ()


def _settled(placements: Any, mesh: DeviceMesh, dims: int) -> tuple[Placement, ...]:
    """Placements for each dimension of the mesh, counted from the front."""
    places = [Replicate() for _ in range(mesh.ndim)] if placements is None else list(placements)
    if len(places) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(places)}, "
            f"and device_mesh.ndim: {mesh.ndim}."
        )
    for at, placement in enumerate(places):
        if not isinstance(placement, Placement):
            raise TypeError(f"placements: expected Shard, Replicate or Partial, found {placement!r}")
        if isinstance(placement, Shard):
            dim = placement.dim + dims if placement.dim < 0 else placement.dim
            if not 0 <= dim < dims:
                raise ValueError(f"Sharding dim {placement.dim} greater than tensor ndim {dims}")
            places[at] = placement.along(dim)
    return tuple(places)


# Functions of tensors


def _call(func: Callable, args: Any, kwargs: dict[str, Any]) -> Any:
    from taeda.distributed.tensor._level import Spreading, changed, tensors_of

    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__", "__delete__") or name in _ITSELF:
        return _of_itself(name, func, args, kwargs)
    found = tensors_of([args, kwargs], DTensor)
    if name in _READING:
        whole = [v.full_tensor().detach() if isinstance(v, DTensor) else v for v in args]
        return func(*whole, **kwargs)
    if name in ("grad", "backward") and "autograd" in (func.__module__ or ""):
        return _gradients(func, args, kwargs)
    mesh = found[0].device_mesh
    for other in found:
        if other.device_mesh != mesh:
            raise RuntimeError(
                f"{name}: got DTensors of several meshes, {mesh} and {other.device_mesh}; bring them to one first"
            )
    _check_unmixed(name, tensors_of([args, kwargs]))
    level = Spreading(mesh)
    given: dict[int, Any] = {}
    with _plain(), level:

        def enter(value: Any) -> Any:
            from taeda.distributed.tensor._level import Part

            if not isinstance(value, DTensor):
                return value
            made = level.dress(Part(part_of(value), value.placements, value._spec.shape))
            given[id(made)] = value
            kept.append(made)
            return made

        kept: list[Any] = []
        inside = changed(args, enter), {key: changed(v, enter) for key, v in kwargs.items()}
        result = func(*inside[0], **inside[1])

        def leave(value: Any) -> Any:
            if id(value) in given:
                return given[id(value)]
            part = level.payload(value)
            return value if part is None else dressed(part.local, mesh, part.placements, part.shape)

        return changed(result, leave)


def _of_itself(name: str, func: Callable, args: Any, kwargs: dict[str, Any]) -> Any:
    """Attributes, and what concerns the tensor rather than its elements."""
    attribute = getattr(getattr(func, "__self__", None), "__name__", "")
    if attribute in ("T", "mT", "H", "mH", "real", "imag"):
        first = args[0]
        turned = {
            "T": lambda: first.permute(*reversed(range(first.ndim))),
            "mT": lambda: first.transpose(-2, -1),
        }
        return turned[attribute]() if attribute in turned else getattr(first.full_tensor(), attribute)
    if name == "backward":
        gradient = args[1] if len(args) > 1 else kwargs.get("gradient")
        rest = {key: v for key, v in kwargs.items() if key != "gradient"}
        gradient = part_of(gradient) if isinstance(gradient, DTensor) else gradient
        return part_of(args[0]).backward(gradient, *args[2:], **rest)
    with _plain():
        return func(*args, **kwargs)


def _gradients(func: Callable, args: Any, kwargs: dict[str, Any]) -> Any:
    from taeda.distributed.tensor._level import changed, tensors_of

    def plain(value: Any) -> Any:
        return changed(value, lambda t: part_of(t) if isinstance(t, DTensor) else t)

    sources = tensors_of([args[1] if len(args) > 1 else kwargs.get("inputs")])
    with _plain():
        given = list(args)
        if func.__name__ == "grad":
            rest = {key: plain(v) for key, v in kwargs.items() if key != "inputs"}
            found = func(
                plain(given[0] if given else kwargs["outputs"]), sources, *map(plain, given[2:]), **rest
            )
            return tuple(
                g if g is None or not isinstance(s, DTensor) or isinstance(g, DTensor)
                else DTensor(g, s._spec.with_placements(_of_gradient(s.placements)))
                for s, g in zip(sources, found, strict=True)
            )  # fmt: skip
        return func(*map(plain, given), **kwargs)


def _check_unmixed(name: str, values: Sequence[Any]) -> None:
    if (
        _may_mix[0]
        or name.startswith(("_fused_", "_foreach_"))
        or all(value.dim() == 0 for value in values if isinstance(value, DTensor))
    ):
        return
    for value in values:
        if not isinstance(value, DTensor) and value.dim() > 0:
            raise RuntimeError(
                f"{name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before "
                "calling distributed operators!"
            )


# Making


def distribute_tensor(
    tensor: Any,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """A leaf that lies over a mesh, with the values of the first process of each row.

    Args:
        tensor: The whole; a leaf, of the same shape in all processes.
        device_mesh: The mesh; None for the one in force.
        placements: How it is to lie; all processes have it unless given.
        src_data_rank: Whose values count along each dimension of the mesh; None for each process's own.

    Raises:
        RuntimeError: `tensor` is no leaf. ValueError: Placements that do not fit, or Partial ones.

    Example:
        >>> x = distribute_tensor(taeda.ones(4, 4), mesh, [Shard(0)])  # doctest: +SKIP
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    places = _settled(placements, mesh, tensor.ndim)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if tensor.placements != places:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {places}. "
                "do you want to call `redistribute` instead?"
            )
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!"
        )
    if any(isinstance(p, Partial) for p in places):
        raise ValueError(f"distribute_tensor: placements are Shard and Replicate, found {places}")
    local = tensor.detach()
    source = None if tensor.is_meta else src_data_rank  # there are no values to give out
    with torch.no_grad():
        for dim, placement in enumerate(places):
            local = _given_out(local, placement, mesh, dim, source)
    meta = TensorMeta(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
    made = DTensor(local, DTensorSpec(mesh, places, meta), requires_grad=tensor.requires_grad)
    return torch.nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else made


def _given_out(local: Any, placement: Placement, mesh: DeviceMesh, dim: int, source: int | None) -> Any:
    place = mesh.get_coordinate()
    if place is None:
        return local.new_empty(0)
    count = mesh.shape[dim]
    if isinstance(placement, Shard):
        parts = [_moves.cut(local, placement, count, i).contiguous() for i in range(count)]
        mine = parts[place[dim]].clone()
        if source is not None and count > 1:
            mesh.get_group(dim).scatter([mine], [parts], source, later=False)
        return mine
    local = local.contiguous()
    if source is not None and count > 1:
        local = local.clone()
        mesh.get_group(dim).broadcast([local], source, later=False)
    return local


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Any:
    """The module, whose parameters and buffers lie over a mesh.

    Args:
        module: Changed in place.
        device_mesh: The mesh; None for the one in force.
        partition_fn: Called with name, module and mesh for each module in it; puts DTensors in the place of
            parameters. What it leaves alone, all processes have.
        input_fn: Called with module, inputs and mesh before each forward; gives the inputs.
        output_fn: Called with module, result and mesh after each forward; gives the result.
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        _replicated(part, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    return module


def _replicated(module: Any, mesh: DeviceMesh) -> None:
    everywhere = [Replicate()] * mesh.ndim
    for name, value in list(module._parameters.items()):
        if value is not None and not isinstance(value, DTensor):
            made = distribute_tensor(value.data, mesh, everywhere)
            module.register_parameter(name, torch.nn.Parameter(made, requires_grad=value.requires_grad))
    for name, value in list(module._buffers.items()):
        if value is not None and not isinstance(value, DTensor):
            module._buffers[name] = distribute_tensor(value, mesh, everywhere)


def _made(
    function: Callable[..., Any], size: Any, mesh: DeviceMesh | None, placements: Any, options: dict[str, Any]
) -> DTensor:
    mesh = mesh or _mesh_resources.get_current_mesh()
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    places = _settled(placements, mesh, len(shape))
    requires_grad = options.pop("requires_grad", False)
    local = function(_moves.local_size(shape, mesh, places)[0], **options)
    spec = DTensorSpec(mesh, places, TensorMeta(shape, _strides(shape, None), local.dtype))
    return DTensor(local, spec, requires_grad=requires_grad)


def zeros(*size: Any, device_mesh: Any = None, placements: Any = None, **options: Any) -> DTensor:
    """Zeros that lie over a mesh; `size` is that of the whole."""
    return _made(torch.zeros, size, device_mesh, placements, options)


def ones(*size: Any, device_mesh: Any = None, placements: Any = None, **options: Any) -> DTensor:
    """Ones that lie over a mesh; `size` is that of the whole."""
    return _made(torch.ones, size, device_mesh, placements, options)


def empty(*size: Any, device_mesh: Any = None, placements: Any = None, **options: Any) -> DTensor:
    """Memory that lies over a mesh; `size` is that of the whole."""
    return _made(torch.empty, size, device_mesh, placements, options)


def full(
    size: Any, fill_value: Any, *, device_mesh: Any = None, placements: Any = None, **options: Any
) -> DTensor:
    """One number everywhere, over a mesh; `size` is that of the whole."""
    return _made(lambda s, **o: torch.full(s, fill_value, **o), (size,), device_mesh, placements, options)


def rand(*size: Any, device_mesh: Any = None, placements: Any = None, **options: Any) -> DTensor:
    """Numbers between 0 and 1; each process draws its part, those that all have the first one draws."""
    return _drawn(torch.rand, size, device_mesh, placements, options)


def randn(*size: Any, device_mesh: Any = None, placements: Any = None, **options: Any) -> DTensor:
    """Normally distributed numbers; each process draws its part, those that all have the first one draws."""
    return _drawn(torch.randn, size, device_mesh, placements, options)


def _drawn(
    function: Callable[..., Any], size: Any, mesh: Any, placements: Any, options: dict[str, Any]
) -> DTensor:
    made = _made(function, size, mesh, placements, options)
    with torch.no_grad():
        for dim, placement in enumerate(made.placements):
            if isinstance(placement, Replicate) and made.device_mesh.shape[dim] > 1:
                made.device_mesh.get_group(dim).broadcast([part_of(made)], 0, later=False)
    return made
