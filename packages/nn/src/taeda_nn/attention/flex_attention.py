"""Attention whose scores a Python function changes (https://arxiv.org/abs/2412.05496).

The function is called once with all scores and with the numbers of batch, head, query and key as tensors that broadcast
against them; so whatever it does with single numbers it does with all. The whole matrix of scores is computed, masks by
blocks too: no kernel is generated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import product
from typing import Any, NamedTuple, TypedDict

from taeda_nn._bind import Tensor, op, tensor

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_pad = op("pad")
#: The types of functions that change scores, and of those that hide them.
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
#: Rows and columns of a block of a mask.
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30


class FlexKernelOptions(TypedDict, total=False):
    """Settings of generated kernels, by name; there are none here that would read them."""


class AuxRequest(NamedTuple):
    """What is asked for beside the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for."""

    lse: Any = None
    max_scores: Any = None


class _ModificationType(Enum):
    """What a function of places is: one of scores, or a mask."""

    SCORE_MOD = 1
    MASK_MOD = 2
    UNKNOWN = 3


def _identity(score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    return score


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask that hides nothing."""
    return batch.new_ones((), dtype=tensor.bool)


def _combined(name: str, masks: tuple[Callable[..., Any], ...], start: bool, join: Callable[..., Any]) -> Any:
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")

    def mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = b.new_full((), start, dtype=tensor.bool)
        for each in masks:
            result = join(result, each(b, h, q_idx, kv_idx))
        return result

    mask.__name__ = name
    return mask


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """The mask that shows what all of these show."""
    return _combined("and_mask", mask_mods, True, lambda a, b: a & b)


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """The mask that shows what one of these shows."""
    return _combined("or_mask", mask_mods, False, lambda a, b: a | b)


def _numbers(sizes: tuple[int, int, int, int], device: Any) -> list[Tensor]:
    """The numbers along each of four dimensions, as tensors that broadcast against each other."""
    return [
        tensor.arange(n, device=device).reshape([n if d == axis else 1 for d in range(4)])
        for axis, n in enumerate(sizes)
    ]


def create_mask(
    mod_fn: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = "cpu",
) -> Tensor:
    """The mask (B, H, Q_LEN, KV_LEN) of a function: bools, or where it changes scores, the scores that zeros become.

    Args:
        mod_fn: ``(b, h, q_idx, kv_idx)`` to bools, or ``(score, b, h, q_idx, kv_idx)`` to scores.
        B: Batches; None for 1.
        H: Heads; None for 1.
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    numbers = _numbers(sizes, device)
    if _takes(mod_fn) == 5:
        made = mod_fn(tensor.zeros(sizes, device=device), *numbers)
        return (made != -math.inf).expand(sizes)
    made = mod_fn(*numbers)
    return tensor.as_tensor(made, dtype=tensor.bool).expand(sizes).contiguous()


def _vmap_for_bhqkv(
    fn: Callable[..., Any],
    prefix: tuple[int | None, ...],
    suffix: tuple[int | None, ...] = (),
    out_dims: int | list[int | None] = 0,
    group_dim: bool = False,
) -> Callable[..., Any]:
    """A function of single numbers as one of vectors of them, whose results have a dimension for each vector.

    Args:
        fn: Takes what comes first, numbers of batch, head (and its group), query and key, and what comes last.
        prefix, suffix: 0 for each tensor beside the numbers that has their dimensions, None for one that is not mapped.
        group_dim: Whether there are five numbers.
    """
    if out_dims != 0:
        raise NotImplementedError(f"_vmap_for_bhqkv: argument 'out_dims' must be 0, found {out_dims}")
    count, first = 5 if group_dim else 4, len(prefix)

    def mapped(*given: Any) -> Any:
        vectors = given[first : first + count]
        sizes = [len(vector) for vector in vectors]
        numbers = [
            v.reshape([n if d == i else 1 for d in range(count)])
            for i, (v, n) in enumerate(zip(vectors, sizes, strict=True))
        ]
        return fn(*given[:first], *numbers, *given[first + count :]).expand(sizes)

    return mapped


def _get_mod_type(fn: Callable[..., Any]) -> _ModificationType:
    """Whether a function takes a score and four numbers, or these numbers."""
    found = {5: _ModificationType.SCORE_MOD, 4: _ModificationType.MASK_MOD}.get(_takes(fn))
    if found is None:
        raise AssertionError(f"Expected 4 or 5 positional args, got {_takes(fn)}")
    return found


def _takes(function: Callable[..., Any]) -> int:
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = [p for p in inspect.signature(function).parameters.values() if p.kind in kinds]
    return sum(1 for p in given if p.default is inspect.Parameter.empty)


class BlockMask:
    """Which blocks of the scores a mask leaves: `create_block_mask` makes it.

    Attributes:
        kv_num_blocks: (B, H, rows) numbers of blocks of each row that are hidden in part.
        kv_indices: (B, H, rows, columns) numbers of these blocks, first those that count.
        full_kv_num_blocks, full_kv_indices: The same of blocks of which nothing is hidden.
        BLOCK_SIZE: Rows and columns of a block.
        mask_mod: The function.
        seq_lengths: Queries and keys.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: The same blocks by columns.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int],
        mask_mod: Callable[..., Any],
    ) -> None:
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Callable[..., Any] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """A mask of its parts; `seq_lengths` follows from the blocks where it is not given."""
        block = _block(BLOCK_SIZE)
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        lengths = seq_lengths or (kv_indices.shape[-2] * block[0], kv_indices.shape[-1] * block[1])
        return cls(
            lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            block,
            mask_mod or noop_mask,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches, heads, queries, keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of scores."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """(B, H, rows, columns): 1 for each block that is not hidden as a whole."""
        made = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None:
            made = made | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return made

    def sparsity(self) -> float:
        """The percentage of the scores that lie in blocks that are hidden as a whole."""
        shown = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            shown += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - shown * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    q_num_blocks = property(lambda self: _turned(self.kv_num_blocks, self.kv_indices)[0])
    q_indices = property(lambda self: _turned(self.kv_num_blocks, self.kv_indices)[1])
    full_q_num_blocks = property(lambda self: _turned(self.full_kv_num_blocks, self.full_kv_indices)[0])
    full_q_indices = property(lambda self: _turned(self.full_kv_num_blocks, self.full_kv_indices)[1])

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The parts, in PyTorch's order; lengths and sizes of blocks as numbers, or as pairs."""
        lengths, block = (
            (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        )
        names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
        names += tuple(name.replace("kv_", "q_") for name in names)
        return (*lengths, *(getattr(self, name) for name in names), *[None] * 4, *block, self.mask_mod)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture: a full square where all is shown, a grey one where a part is.

        Args:
            grid_size: At most so many rows and columns; -1 for one of each block.
            limit: At most so many pairs of batch and head.
        """
        dense = self.to_dense()
        rows, columns = dense.shape[-2:]
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        steps = [1 if m < 0 else max(1, -(-n // m)) for n, m in zip((rows, columns), most, strict=True)]

        def lines(part: Tensor) -> Iterator[str]:
            for r in range(0, rows, steps[0]):
                squares = [
                    part[r : r + steps[0], c : c + steps[1]].float().mean()
                    for c in range(0, columns, steps[1])
                ]
                yield "".join(
                    ("██" if share == 1 else "  " if share == 0 else "░░") for share in map(float, squares)
                )

        places = list(product(*map(range, dense.shape[:-2])))
        pictures = ["\n".join([str(place), *lines(dense[place]), ""]) for place in places[:limit]]
        if len(places) > limit:
            pictures += ["...", "To print out more, set BlockMask.to_string(limit=N)"]
            pictures += ["You can also index (BlockMask[batch, head]) to choose a specific batch or head"]
        return "\n".join(pictures)

    def to(self, device: Any) -> BlockMask:
        """The mask on another device."""
        return self._each(lambda part: part.to(device))

    def __getitem__(self, index: Any) -> BlockMask:
        """A part of the batches, heads and rows of blocks; the function stays, and so do dimensions of one number."""
        places = index if isinstance(index, tuple) else (index,)
        kept = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in places)
        return self._each(lambda part: part[kept])

    def _each(self, change: Callable[[Tensor], Tensor]) -> BlockMask:
        parts = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        made = [None if part is None else change(part) for part in parts]
        return BlockMask(self.seq_lengths, *made, self.BLOCK_SIZE, self.mask_mod)  # type: ignore[arg-type]

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        made = self._each(lambda part: part)
        made.seq_lengths = (new_q_len, new_kv_len)
        return made

    def __str__(self) -> str:
        return (
            f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"
        )

    def __repr__(self) -> str:
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        return f"BlockMask(\n    shape={self.shape},\n    sparsity={self.sparsity():.2f}%,\n    mask_mod={name}\n)"


def _block(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def _dense(counts: Tensor, indices: Any) -> Tensor:
    columns = indices.shape[-1]
    counted = tensor.arange(columns, device=counts.device) < counts.unsqueeze(-1)
    made = tensor.zeros(indices.shape, dtype=tensor.int32, device=counts.device)
    return made.scatter_add(-1, indices.long(), counted.to(tensor.int32))


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row there are, and the blocks, first those that are there."""
    order = blocks.to(tensor.int32).sort(dim=-1, descending=True, stable=True)[1]
    return blocks.sum(-1).to(tensor.int32), order.to(tensor.int32)


def _turned(counts: Tensor | None, indices: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The blocks of each column, of those of each row."""
    return (None, None) if counts is None else _listed(_dense(counts, indices).transpose(-2, -1))


def _create_empty_block_mask(query: Tensor, key: Tensor) -> BlockMask:
    """The mask of one block that hides nothing."""
    one = tensor.ones(1, 1, 1, dtype=tensor.int32, device=query.device)
    return BlockMask.from_kv_blocks(
        one, one.new_zeros(1, 1, 1, 1), BLOCK_SIZE=_LARGE_SPARSE_BLOCK_SIZE, seq_lengths=(1, 1)
    )


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = "cpu",
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
) -> BlockMask:
    """The blocks of a mask that are shown in part, and those that are shown as a whole.

    Args:
        mask_mod: ``(b, h, q_idx, kv_idx)`` to bools: True where a key is seen.
        B: Batches; None for 1, which serves all.
        H: Heads; None for 1.
        Q_LEN: Queries.
        KV_LEN: Keys.
        BLOCK_SIZE: Rows and columns of a block.

    Example:
        >>> from taeda.nn.attention.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256).sparsity()
        25.0
    """
    if not callable(mask_mod):
        raise TypeError(
            f"create_block_mask: argument 'mask_mod' must be callable, found {type(mask_mod).__name__}"
        )
    block = _block(BLOCK_SIZE)
    whole = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // block[0]), -(-KV_LEN // block[1])
    missing = (0, columns * block[1] - KV_LEN, 0, rows * block[0] - Q_LEN)
    padded = _pad(whole.to(tensor.int32), missing) if any(missing) else whole.to(tensor.int32)
    seen = padded.reshape(*whole.shape[:2], rows, block[0], columns, block[1]).sum((3, 5))
    full = seen == block[0] * block[1]
    partly = (seen > 0) & ~full
    return BlockMask((Q_LEN, KV_LEN), *_listed(partly), *_listed(full), block, mask_mod)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention whose scores ``score_mod`` changes and ``block_mask`` hides.

    Args:
        query: (B, heads, L, E).
        key: (B, key heads, S, E).
        value: (B, key heads, S, Ev).
        score_mod: ``(score, b, h, q_idx, kv_idx)`` to the new score; it sees all scores at once, and the numbers of
            batch, head, query and key as tensors that broadcast against them.
        block_mask: What `create_block_mask` gave.
        scale: Factor of the products; 1 / sqrt(E) by default.
        enable_gqa: Let groups of heads share keys and values.
        return_lse: Give the logarithms of the sums too.
        return_aux: What else to give.

    Returns:
        (B, heads, L, Ev); with `return_lse` also (B, heads, L), with `return_aux` an `AuxOutput`. Queries that see
        nothing give zeros.

    Raises:
        ValueError: Heads that do not fit, or a mask of other lengths.

    Example:
        >>> from taeda.nn.attention.flex_attention import flex_attention
        >>> x = taeda.ones(1, 2, 3, 4)
        >>> flex_attention(x, x, x, score_mod=lambda score, b, h, q, k: score - (q - k).abs()).shape
        Size([1, 2, 3, 4])
    """
    _check(query, key, value, block_mask, enable_gqa)
    heads = query.shape[1]
    if enable_gqa and key.shape[1] != heads:
        key = key.repeat_interleave(heads // key.shape[1], 1)
        value = value.repeat_interleave(heads // value.shape[1], 1)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    wide = tensor.float64 if query.dtype == tensor.float64 else tensor.float32
    scores = tensor.matmul(query, key.transpose(-2, -1)).to(wide) * factor
    sizes = (query.shape[0], heads, query.shape[2], key.shape[2])
    numbers = _numbers(sizes, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *numbers).to(wide).expand(sizes)
    if block_mask is not None and block_mask.mask_mod is not noop_mask:
        shown = tensor.as_tensor(block_mask.mask_mod(*numbers), device=query.device)
        scores = scores.masked_fill(~shown, -math.inf)
    lse = scores.logsumexp(-1)
    blind = lse == -math.inf
    weights = tensor.softmax(scores, -1).masked_fill(blind.unsqueeze(-1), 0.0)
    result = tensor.matmul(weights.to(value.dtype), value)
    if return_aux is not None:
        most = scores.amax(-1) if return_aux.max_scores else None
        return result, AuxOutput(lse if return_aux.lse else None, most)
    return (result, lse) if return_lse else result


def _check(query: Tensor, key: Tensor, value: Tensor, mask: BlockMask | None, grouped: bool) -> None:
    given = (query, key, value)
    if any(x.dim() != 4 for x in given):
        raise ValueError(
            f"flex_attention: query, key and value must have 4 dimensions, found {[x.dim() for x in given]}"
        )
    if len({x.dtype for x in given}) > 1:
        raise ValueError(
            f"flex_attention: query, key and value must have one dtype, found {[x.dtype for x in given]}"
        )
    if not grouped and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"flex_attention: found {query.shape[1]} query heads and {key.shape[1]} key heads; pass enable_gqa=True"
        )
    if grouped and query.shape[1] % key.shape[1]:
        raise ValueError(
            f"flex_attention: {query.shape[1]} query heads are no multiple of {key.shape[1]} key heads"
        )
    lengths = (query.shape[2], key.shape[2])
    if mask is not None and tuple(mask.seq_lengths) != lengths and mask.mask_mod is not noop_mask:
        raise ValueError(
            f"flex_attention: block_mask was made for lengths {mask.seq_lengths}, found {lengths}; make it anew"
        )
