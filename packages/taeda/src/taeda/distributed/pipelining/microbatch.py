"""Batches cut into microbatches, and results of microbatches put together again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import taeda as torch
from taeda.nn.attention.flex_attention import BlockMask
from taeda.utils import _pytree

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]

DEFAULT_CHUNK_DIM = 0


class TensorChunkSpec:
    """Along which dimension a tensor is cut, or results are joined.

    Args:
        split_dim: The dimension.

    Example:
        >>> TensorChunkSpec.from_tuple((0, 1))[1].split_dim
        1
    """

    def __init__(self, split_dim: int) -> None:
        if not isinstance(split_dim, int) or isinstance(split_dim, bool):
            raise TypeError(f"TensorChunkSpec: argument split_dim: expected an int, found {split_dim!r}")
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[Any, ...]) -> tuple[Any, ...]:
        """One for each dimension in a tuple, which may hold further containers."""
        return _pytree.tree_map(TensorChunkSpec, chunk_dims)  # type: ignore[no-any-return]

    @staticmethod
    def from_dict(chunk_dims: dict[str, Any]) -> dict[str, Any]:
        """One for each dimension in a dict, which may hold further containers."""
        return _pytree.tree_map(TensorChunkSpec, chunk_dims)  # type: ignore[no-any-return]


class _Replicate:
    """Every microbatch gets the value as it is."""


class _CustomReducer:
    """Results of microbatches are combined by a function, beginning with a value."""

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]) -> None:
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    """A `_CustomReducer` of a loss."""


sum_reducer = _LossReducer(0.0, operator.add)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, BlockMask)


def _replicates(spec: Any) -> bool:
    return spec is _Replicate or isinstance(spec, _Replicate)


def _length(value: Any, spec: Any, most: int) -> int:
    """Into how many parts a value can be cut, `most` where there is no limit."""
    if _replicates(spec):
        return most
    if not isinstance(spec, TensorChunkSpec) or not isinstance(value, (torch.Tensor, BlockMask)):
        raise ValueError(
            "split_args_kwargs_into_chunks: expected TensorChunkSpec for a tensor and _Replicate for anything else, "
            f"found {spec} for a value of type {type(value).__name__}"
        )
    if isinstance(value, BlockMask):
        if spec.split_dim != 0:
            raise ValueError(
                "split_args_kwargs_into_chunks: a BlockMask is cut along dimension 0 only, "
                f"found {spec.split_dim}"
            )
        batches = int(value.kv_num_blocks.size(0))
        return most if batches == 1 else batches
    if not -value.dim() <= spec.split_dim < value.dim():
        raise ValueError(
            f"split_args_kwargs_into_chunks: expected a tensor that has dimension {spec.split_dim}, found one of "
            f"shape {tuple(value.shape)}"
        )
    return int(value.size(spec.split_dim))


def _parts(value: Any, spec: Any, chunks: int) -> Sequence[Any]:
    """The parts of one value."""
    if _replicates(spec):
        return [value] * chunks
    if isinstance(value, BlockMask):
        return _mask_parts(value, chunks)
    return _split_tensor(value, spec, chunks)


def _split_tensor(tensor: Any, spec: TensorChunkSpec, num_chunks: int) -> Sequence[Any]:
    """The parts of a tensor; those of a leaf that wants a gradient keep theirs too.

    Raises:
        ValueError: It is too short.
    """
    if tensor.size(spec.split_dim) < num_chunks:
        raise ValueError(
            f"cutting a tensor into microbatches: expected a size of at least {num_chunks} in dimension "
            f"{spec.split_dim}, found shape {tuple(tensor.shape)}"
        )
    parts = torch.tensor_split(tensor, num_chunks, spec.split_dim)
    if tensor.requires_grad and tensor.is_leaf:
        for part in parts:
            if part.requires_grad:
                part.retain_grad()
    return parts  # type: ignore[no-any-return]


def _mask_parts(mask: BlockMask, chunks: int) -> list[BlockMask]:
    """The parts of a mask along its batches; each asks the mask's function of its own batches."""
    if mask.kv_num_blocks.size(0) == 1:
        return [mask] * chunks
    fields = (mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices)
    cut = [[None] * chunks if field is None else torch.tensor_split(field, chunks, 0) for field in fields]
    made, start = [], 0
    for number, indices, full_number, full_indices in zip(*cut, strict=True):
        made.append(
            BlockMask.from_kv_blocks(
                number, indices, full_number, full_indices, BLOCK_SIZE=mask.BLOCK_SIZE,
                mask_mod=_moved(mask.mask_mod, start), seq_lengths=mask.seq_lengths,
            )
        )  # fmt: skip
        start += int(number.size(0))
    return made


def _moved(mask_mod: Callable[..., Any], start: int) -> Callable[..., Any]:
    return lambda b, h, q_idx, kv_idx: mask_mod(b + start, h, q_idx, kv_idx)


def _default(value: Any) -> Any:
    return (
        TensorChunkSpec(DEFAULT_CHUNK_DIM) if isinstance(value, (torch.Tensor, BlockMask)) else _Replicate()
    )


def _leaves(values: Any, specs: Any, name: str) -> tuple[list[Any], list[Any], Any]:
    """The leaves of arguments, what is said of each, and how they are put together again."""
    leaves, tree = _pytree.tree_flatten(values, is_leaf=_is_leaf)
    if specs is None:
        return leaves, [_default(leaf) for leaf in leaves], tree
    said = _pytree.tree_leaves(specs, is_leaf=_is_leaf)
    if len(said) != len(leaves) or len(specs) != len(values):
        raise ValueError(
            f"split_args_kwargs_into_chunks: argument {name}: expected one entry for each of {len(leaves)} values, "
            f"found {len(said)}"
        )
    if isinstance(values, dict) and set(values) != set(specs):
        raise ValueError(
            f"split_args_kwargs_into_chunks: argument {name}: expected entries for {sorted(values)}, found "
            f"{sorted(specs)}"
        )
    if isinstance(values, dict):  # in the order of the values
        said = _pytree.tree_leaves({key: specs[key] for key in values}, is_leaf=_is_leaf)
    return leaves, said, tree


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: tuple[Any, ...] | None = None,
    kwargs_chunk_spec: dict[str, Any] | None = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """Arguments of a batch cut into those of microbatches.

    Args:
        args: By position.
        kwargs: By name.
        chunks: The number of microbatches. There are fewer where a tensor is too short.
        args_chunk_spec: For each value in `args` a `TensorChunkSpec`, or `_Replicate` for one that all microbatches
            get whole. None cuts tensors along dimension 0.
        kwargs_chunk_spec: The same for `kwargs`.

    Returns:
        The arguments by position of each microbatch, and those by name.

    Raises:
        ValueError: What is said does not fit the arguments.

    Example:
        >>> parts, _ = split_args_kwargs_into_chunks((taeda.arange(4), 7), None, 2)
        >>> [(part.tolist(), number) for part, number in parts]
        [([0, 1], 7), ([2, 3], 7)]
    """
    kwargs = kwargs or {}
    if not isinstance(chunks, int) or chunks < 1:
        raise ValueError(
            f"split_args_kwargs_into_chunks: argument chunks: expected a number from 1, found {chunks!r}"
        )
    values, specs, tree = _leaves(tuple(args), args_chunk_spec, "args_chunk_spec")
    named, named_specs, named_tree = _leaves(kwargs, kwargs_chunk_spec, "kwargs_chunk_spec")
    pairs = list(zip([*values, *named], [*specs, *named_specs], strict=True))
    count = min([chunks, *(_length(value, spec, chunks) for value, spec in pairs)])
    cut = [_parts(value, spec, count) for value, spec in pairs]
    first, rest = cut[: len(values)], cut[len(values) :]
    return (
        [_pytree.tree_unflatten([part[i] for part in first], tree) for i in range(count)],
        [_pytree.tree_unflatten([part[i] for part in rest], named_tree) for i in range(count)],
    )


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """The result of a batch, of those of its microbatches.

    Args:
        chunks: The results.
        chunk_spec: For each value in a result a `TensorChunkSpec`, or anything else for one that all microbatches have
            alike. None joins tensors along dimension 0.

    Raises:
        ValueError: It does not fit the results, or values that are to be alike differ.

    Example:
        >>> merge_chunks([taeda.zeros(1), taeda.ones(1)], None).tolist()
        [0.0, 1.0]
    """
    flat = [_pytree.tree_leaves(chunk) for chunk in chunks]
    if chunk_spec is None:
        leaves, tree = _pytree.tree_flatten(chunks[0])
        specs: list[Any] = [_default(leaf) for leaf in leaves]
    else:
        specs, tree = _pytree.tree_flatten(chunk_spec)
    for found in flat:
        if len(found) != len(specs):
            raise ValueError(
                f"merge_chunks: argument chunks: expected {len(specs)} values in each, as chunk_spec {chunk_spec} "
                f"has, found {len(found)}"
            )
    columns = zip(*flat, strict=True)
    merged = [_merged(list(column), spec) for column, spec in zip(columns, specs, strict=True)]
    return _pytree.tree_unflatten(merged, tree)


def _merged(values: list[Any], spec: Any) -> Any:
    if isinstance(spec, TensorChunkSpec):
        return torch.cat(values, dim=spec.split_dim)
    if isinstance(spec, _CustomReducer):
        result = spec.init_value
        for value in values:
            result = spec.reduce_fn(result, value)
        return result
    for value in values[1:]:
        alike = torch.equal(value, values[0]) if isinstance(value, torch.Tensor) else value == values[0]
        if not alike:
            raise ValueError(
                f"merge_chunks: expected the same value in all chunks, found {values[0]} and {value}"
            )
    return values[0]
