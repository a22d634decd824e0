"""The plans that are made unless others are given."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import taeda as torch
from taeda.distributed.checkpoint import planner_helpers as helpers
from taeda.distributed.checkpoint._nested_dict import flatten_state_dict, set_element
from taeda.distributed.checkpoint.metadata import BytesStorageMetadata, Metadata, StorageMeta
from taeda.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from taeda.distributed.tensor._utils import narrow_tensor_by_index

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan",
]  # fmt: skip


class DefaultSavePlanner(SavePlanner):
    """Writes everything once, each part in the first process that has it.

    Args:
        flatten_state_dict: Write what is in nested dicts by itself.
        flatten_sharded_tensors, dedup_replicated_tensors, dedup_save_to_lowest_rank, enable_plan_caching: Accepted.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.mappings: dict[str, tuple] = {}
        self.state_dict: Any = {}

    def set_up_planner(
        self, state_dict: Any, storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Gets what is to be saved."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        """What this process could write."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What each process writes, and what the checkpoint holds."""
        plans, metadata = create_default_global_save_plan(all_plans)
        if self.flatten_state_dict:
            merged: dict[str, tuple] = {}
            for plan in plans:
                merged.update(plan.planner_data or {})
            metadata = dataclasses.replace(metadata, planner_data=merged)
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """What this process writes in the end."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Any:
        """The tensor, or the bytes."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: Any) -> Any:
        """The value that an index stands for."""
        value = self.state_dict[index.fqn]
        return helpers.local_of(value) if isinstance(value, torch.Tensor) else value

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """What is written of a value."""
        if write_item.type is WriteItemType.BYTE_IO:
            stream = io.BytesIO()
            torch.save(object, stream, format="torch")
            return stream
        return object


class DefaultLoadPlanner(LoadPlanner):
    """Reads everything that the state to be loaded has.

    Args:
        flatten_state_dict: Look for what is in nested dicts by itself.
        flatten_sharded_tensors: Accepted.
        allow_partial_load: Leave alone what the checkpoint does not have.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load
        self.original_state_dict: Any = {}
        self.mappings: dict[str, tuple] = {}

    def set_up_planner(
        self, state_dict: Any, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Gets what is to be loaded, and what there is."""
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """What this process reads."""
        assert self.metadata is not None
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What each process reads."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """What this process reads in the end."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: Any) -> None:
        """Takes an object that is no tensor."""
        self._put(read_item.dest_index.fqn, torch.load(value, weights_only=False))

    def _put(self, name: str, found: Any) -> None:
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], found)
        else:
            self.state_dict[name] = found

    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """The part of a tensor into which is read."""
        if not isinstance(self.state_dict[read_item.dest_index.fqn], torch.Tensor):
            assert self.metadata is not None
            stored = self.metadata.state_dict_metadata[read_item.dest_index.fqn]
            return torch.zeros(stored.size, dtype=stored.properties.dtype)
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Is told that the tensor has been read; a number takes the place of one."""
        name = read_item.dest_index.fqn
        value = self.state_dict[name]
        if not isinstance(value, torch.Tensor):
            self._put(name, type(value)(tensor.item()))

    def lookup_tensor(self, index: Any) -> Any:
        """The tensor that an index stands for, its part in this process."""
        return helpers.local_of(self.state_dict[index.fqn])

    def transform_tensor(self, read_item: ReadItem, tensor: Any) -> Any:
        """The part of the tensor that is read."""
        return narrow_tensor_by_index(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Reads everything, or what `keys` name, into an empty dict."""

    def __init__(self, keys: set[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _wanted(self, name: str, path: Any) -> bool:
        if self.keys is None:
            return True
        starts = [".".join(map(str, path[: n + 1])) for n in range(len(path or ()))]
        return name in self.keys or any(start in self.keys for start in starts)

    def set_up_planner(
        self, state_dict: Any, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Makes room for what there is."""
        if state_dict:
            raise AssertionError("state_dict must be empty")
        assert metadata is not None
        paths = metadata.planner_data or {}
        for name, stored in metadata.state_dict_metadata.items():
            if not self._wanted(name, paths.get(name, (name,))):
                continue
            value: Any = None
            if not isinstance(stored, BytesStorageMetadata):
                value = torch.empty(tuple(stored.size), dtype=stored.properties.dtype)
            set_element(state_dict, paths.get(name, (name,)), value)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """All parts that this process has."""
    return SavePlan([item for name, value in state_dict.items() for item in helpers.write_items(name, value)])


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """Each part in the first process that has it, and what the checkpoint holds."""
    seen: dict[Any, WriteItem] = {}
    plans = []
    by_name: dict[str, list[WriteItem]] = {}
    for plan in all_plans:
        kept = []
        for item in plan.items:
            if item.index in seen:
                continue
            seen[item.index] = item
            known = by_name.setdefault(item.index.fqn, [])
            if item.tensor_data is not None and rewrite_index_hints:
                item = dataclasses.replace(item, index=dataclasses.replace(item.index))
                object.__setattr__(item.index, "index", len(known))
            known.append(item)
            kept.append(item)
        plans.append(dataclasses.replace(plan, items=kept))
    return plans, Metadata({name: helpers.described(items) for name, items in by_name.items()})


def create_default_local_load_plan(
    state_dict: dict[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """All parts that this process needs.

    Raises:
        RuntimeError: The checkpoint does not have a name, and `strict`.
    """
    items: list[ReadItem] = []
    for name, value in state_dict.items():
        if name not in metadata.state_dict_metadata:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        items += helpers.read_items(name, metadata.state_dict_metadata[name], value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are."""
    return all_plans
