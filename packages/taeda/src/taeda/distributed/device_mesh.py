"""Meshes: the processes of a job as a grid, each row and column of which is a group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import taeda as torch
from taeda.distributed import _world
from taeda.distributed._group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Processes as a grid. Along each of its dimensions those that differ only there are a group.

    All processes of the job make it, in the same order.

    Args:
        device_type: Where tensors of the mesh are: "cpu", or another kind of device.
        mesh: The processes by their numbers in the job, a tensor of int or nested lists.
        mesh_dim_names: A name for each dimension, by which parts are found: ``mesh["tp"]``.
        backend_override: The way of communication, by number of the dimension.

    Raises:
        ValueError: Names that do not fit the dimensions. RuntimeError: A process that is not there, or one twice.

    Example:
        >>> mesh = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp"))  # doctest: +SKIP
        >>> mesh["tp"].get_group()  # of this process's row  # doctest: +SKIP
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Iterable[str] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
        _rank: int | None = None,
    ) -> None:
        if mesh is None:
            raise TypeError("DeviceMesh: argument 'mesh' is required")
        grid = (
            mesh.detach().cpu().to(torch.int)
            if isinstance(mesh, torch.Tensor)
            else torch.tensor(mesh, dtype=torch.int)
        )
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        _check_names(names, grid.ndim)
        if _init_backend and not _world.is_initialized():
            _world.init_process_group()
        rank = _world.get_rank() if _rank is None else _rank
        self._fill(device_type, grid, names, rank)
        if _init_backend:
            _check_ranks(self._ranks)
            self._groups = [_groups_along(self, dim, backend_override) for dim in range(grid.ndim)]

    def _fill(self, device_type: str, grid: Any, names: tuple[str, ...] | None, rank: int) -> None:
        self._device_type, self._mesh, self._names, self._rank = device_type, grid.contiguous(), names, rank
        self._ranks = tuple(self._mesh.reshape(-1).tolist())
        self._groups: list[Any] | None = None
        self._root: DeviceMesh | None = None
        self._flat: dict[str, DeviceMesh] = {}
        self._parts: dict[tuple[str, ...], DeviceMesh] = {}
        place = self._ranks.index(rank) if rank in self._ranks else None
        self._coordinate = None if place is None else _coordinate(place, self.shape)

    # What it is

    @property
    def device_type(self) -> str:
        """Where its tensors are."""
        return self._device_type

    @property
    def mesh(self) -> Any:
        """The processes, a tensor of int."""
        return self._mesh

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of its dimensions."""
        return self._names

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return int(self._mesh.ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes stand along each dimension."""
        return tuple(self._mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, in all or along one dimension."""
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def __repr__(self) -> str:
        names = self._names
        shown = (
            f"({', '.join(f'{n}={s}' for n, s in zip(names, self.shape, strict=True))})"
            if names
            else f"{self.shape}"
        )
        return f"DeviceMesh({shown}, '{self._device_type}', stride={tuple(self._mesh.stride())})"

    def _key(self) -> tuple[Any, ...]:
        return self._device_type, self.shape, self._ranks, self._names

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, self._key()

    def __deepcopy__(self, memo: Any) -> DeviceMesh:
        return self

    def __enter__(self) -> DeviceMesh:
        _current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.pop()

    # Where this process stands

    def get_rank(self) -> int:
        """The number of this process in the job."""
        return _world.get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process stands; None where it is not in the mesh."""
        return self._coordinate

    def _is_current_rank_part_of_mesh(self) -> bool:
        return self._coordinate is not None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process stands along one dimension, which a mesh of one dimension need not be told.

        Raises:
            RuntimeError: No dimension is given and there are several, or the process is not in the mesh.
        """
        return int(_world.get_rank(self.get_group(0 if mesh_dim is None and self.ndim == 1 else mesh_dim)))

    # Groups and parts

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of this process along one dimension, which a mesh of one dimension need not be told.

        Raises:
            RuntimeError: No dimension is given and there are several, or there are no groups.
            KeyError: No dimension has the name.
        """
        if self._groups is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions",
                    "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                    "If you want to get the list of all the ProcessGroups in the DeviceMesh,"
                    "please use `get_all_groups()` instead.",
                )
            mesh_dim = 0
        if isinstance(mesh_dim, str):
            flat = self._get_root_mesh()._flat.get(mesh_dim)
            if flat is not None:
                return flat.get_group()
            mesh_dim = self._dim_of(mesh_dim)
        found: ProcessGroup = self._groups[mesh_dim]
        return found

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of this process along all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def _dim_of(self, name: str) -> int:
        if not self._names or name not in self._names:
            raise KeyError(
                f"Mesh dimension '{name}' does not exist. Available mesh dimensions are: {self._names}"
            )
        return self._names.index(name)

    _get_mesh_dim_by_name = _dim_of

    def _get_root_mesh(self) -> DeviceMesh:
        return self._root or self

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of this process along the named dimensions, in their order.

        Raises:
            RuntimeError: The dimensions have no names. KeyError: None has that name.
        """
        if not self._names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._names:
            return self
        root = self._get_root_mesh()
        if len(names) == 1 and names[0] in root._flat:
            return root._flat[names[0]]
        found = self._parts.get(names)
        if found is None:
            unknown = [name for name in names if name not in self._names]
            if unknown or len(set(names)) != len(names):
                valid = (*self._names, *root._flat)
                raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {valid}.")
            found = self._parts[names] = self._along([self._dim_of(name) for name in names], names)
        return found

    def _along(self, dims: Sequence[int], names: tuple[str, ...] | None) -> DeviceMesh:
        """The processes that stand where this one does in all other dimensions."""
        here = self._coordinate or (0,) * self.ndim
        grid = self._mesh.permute([*dims, *(d for d in range(self.ndim) if d not in dims)])
        for dim in range(self.ndim):
            if dim not in dims:
                grid = grid.select(len(dims), here[dim])
        part = DeviceMesh.__new__(DeviceMesh)
        part._fill(self._device_type, grid, names, self._rank)
        if self._coordinate is None:
            part._coordinate = None
        part._root = self._get_root_mesh()
        part._groups = None if self._groups is None else [self._groups[dim] for dim in dims]
        return part

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """All its processes in one dimension, which the whole mesh finds by its name from then on."""
        root = self._get_root_mesh()
        name = mesh_dim_name or "_".join(self._names or ())
        if name in root._flat:
            return root._flat[name]
        if self.ndim == 1:
            made = self._along([0], (name,))
        else:
            # Every process makes the groups of all parts like this one.
            dims = [root._dim_of(item) for item in self._names or ()] or list(range(root.ndim))
            others = [d for d in range(root.ndim) if d not in dims]
            rows = root._mesh.permute([*others, *dims]).reshape(-1, self.size()).tolist()
            made = DeviceMesh.__new__(DeviceMesh)
            made._fill(self._device_type, self._mesh.reshape(-1), (name,), self._rank)
            made._groups = [_groups_of(rows, backend_override, f"mesh_{name}")]
            made._root = root
        root._flat[name] = made
        return made

    def _get_all_submeshes(self, mesh_dim_name: str) -> list[DeviceMesh]:
        """The parts along one dimension, not only that of this process."""
        dim = self._dim_of(mesh_dim_name)
        found = []
        for row in self._mesh.movedim(dim, -1).reshape(-1, self.shape[dim]).tolist():
            part = DeviceMesh(
                self._device_type, row, mesh_dim_names=(mesh_dim_name,), _init_backend=False, _rank=self._rank
            )
            part._groups = self._groups and [self._groups[dim]] if self._rank in row else None
            part._root = self._get_root_mesh()
            found.append(part)
        return found

    @staticmethod
    def from_group(
        group: Any,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:
        """A mesh of groups that are there already.

        Args:
            group: One group, or one for each dimension.
            device_type: Where tensors of the mesh are.
            mesh: The processes; needed with several groups.
            mesh_dim_names: A name for each dimension.

        Raises:
            ValueError: `mesh` is missing, or is not what the groups are.
        """
        groups = [group] if isinstance(group, ProcessGroup) else list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        own = _world.get_process_group_ranks(groups[0])
        if mesh is None:
            if len(groups) > 1:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            mesh = own
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if len(groups) == 1 and made._ranks != tuple(own):
            raise ValueError(f"Invalid mesh {made._mesh.tolist()} for ProcessGroup with ranks {list(own)}")
        if made.ndim != len(groups):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                f"{made._mesh.tolist()} and {len(groups)} ProcessGroups"
            )
        made._groups = groups
        return made


_current: list[DeviceMesh] = []


class _MeshEnvironment:
    """Which mesh is in force, as `with mesh:` says."""

    @property
    def mesh_stack(self) -> list[DeviceMesh]:
        return _current

    def get_current_mesh(self) -> DeviceMesh:
        """The innermost mesh.

        Raises:
            RuntimeError: There is none.
        """
        if not _current:
            raise RuntimeError("No device mesh is currently active!")
        return _current[-1]

    def get_root_mesh(self, device_mesh: DeviceMesh) -> DeviceMesh:
        """The mesh that another one is a part of."""
        return device_mesh._get_root_mesh()


_mesh_resources = _MeshEnvironment()


def _again(device_type: str, shape: tuple[int, ...], ranks: tuple[int, ...], names: Any) -> DeviceMesh:
    """A mesh that was sent or stored: its groups are made where there is a job that has them."""
    grid = torch.tensor(ranks, dtype=torch.int).reshape(shape)
    can = _world.is_initialized() and max(ranks, default=0) < _world.get_world_size()
    key = (device_type, shape, ranks, names, id(_world.groups.mesh) if can else None)
    if key not in _made:
        _made[key] = DeviceMesh(
            device_type, grid, mesh_dim_names=names, _init_backend=can, _rank=None if can else -1
        )
    return _made[key]


_made: dict[Any, DeviceMesh] = {}


def _coordinate(place: int, shape: Sequence[int]) -> tuple[int, ...]:
    found: list[int] = []
    for size in reversed(shape):
        place, rest = divmod(place, size)
        found.append(rest)
    return tuple(reversed(found))


def _check_names(names: tuple[str, ...] | None, ndim: int) -> None:
    if names is None:
        return
    if len(set(names)) != len(names):
        raise RuntimeError(
            "Each mesh_dim_name must be unique.", f"Found repeated mesh_dim_name in mesh_dim_names {names}"
        )
    if len(names) != ndim:
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length!",
            f"Found len(mesh_dim_names): {len(names)} and len(mesh_shape):{ndim}",
        )


def _check_ranks(ranks: Sequence[int]) -> None:
    size = _world.get_world_size()
    if len(ranks) > size:
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {size}, but found {len(ranks)} ranks!"
        )
    if len(set(ranks)) != len(ranks) or any(not 0 <= rank < size for rank in ranks):
        raise RuntimeError(f"DeviceMesh must have unique ranks below {size}, found {list(ranks)}")


def _groups_along(mesh: DeviceMesh, dim: int, override: Any) -> Any:
    """Make the groups along one dimension; that of this process."""
    rows = mesh._mesh.movedim(dim, -1).reshape(-1, mesh.shape[dim]).tolist()
    name = mesh._names[dim] if mesh._names else f"dim_{dim}"
    chosen = override[dim] if override else None
    return _groups_of(rows, chosen[0] if isinstance(chosen, tuple) else chosen, f"mesh_{name}")


def _groups_of(rows: Sequence[Sequence[int]], backend: str | None, about: str) -> Any:
    world = _world.default_group()
    if backend is None and len(rows) == 1 and list(rows[0]) == list(range(world.size())):
        return world
    mine = None
    for row in rows:
        made = _world.new_group(row, backend=backend, group_desc=about, sort_ranks=False)
        if world.rank() in row:
            mine = made
    return mine


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """A mesh of the processes of the job, in their order.

    Args:
        device_type: Where tensors of the mesh are: "cpu", or another kind of device, without a number.
        mesh_shape: How many processes stand along each dimension.
        mesh_dim_names: A name for each dimension.
        backend_override: By name or number of a dimension the way of communication.

    Raises:
        RuntimeError: Names that do not fit, a kind of device with a number, or more processes than there are.

    Example:
        >>> mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))  # doctest: +SKIP
    """
    names = None if mesh_dim_names is None else tuple(mesh_dim_names)
    _check_names(names, len(mesh_shape))
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    override = None
    if backend_override:
        keys = [*range(len(mesh_shape))] if names is None else list(names)
        override = [backend_override.get(key, backend_override.get(i)) for i, key in enumerate(keys)]
    grid = torch.arange(math.prod(mesh_shape), dtype=torch.int).view(tuple(mesh_shape))
    return DeviceMesh(device_type, grid, mesh_dim_names=names, backend_override=override)
