"""Batches of sequences of different lengths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from taeda_nn._bind import Tensor, overridable, tensor


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences stored time by time without padding.

    Attributes:
        data: (total steps, ...): the first step of every sequence, then the second of those that have one, and so on.
        batch_sizes: (longest,), int64, on the CPU: how many sequences have each step.
        sorted_indices: Which sequence was put at each place, longest first; None when they came sorted.
        unsorted_indices: The inverse permutation.
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            raise ValueError(
                "PackedSequence: batch_sizes must be given; use pack_padded_sequence to make one"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves or converts the data (and moves the permutations); itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [
            index if index is None else index.to(device=data.device)
            for index in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *moved)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves the data to the CPU."""
        return self.to(*args, **{"device": "cpu", **kwargs})

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves the data to a GPU."""
        return self.to(*args, **{"device": "cuda", **kwargs})

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data is in memory that devices reach directly."""
        return self.data.is_pinned()

    def pin_memory(self) -> PackedSequence:
        """Moves the data to memory that devices reach directly."""
        moved = [index if index is None else index.pin_memory() for index in self[2:]]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *moved)

    def half(self) -> PackedSequence:
        """Converts the data to float16."""
        return self.to(dtype=tensor.float16)

    def long(self) -> PackedSequence:
        """Converts the data to int64."""
        return self.to(dtype=tensor.int64)

    def int(self) -> PackedSequence:
        """Converts the data to int32."""
        return self.to(dtype=tensor.int32)

    def short(self) -> PackedSequence:
        """Converts the data to int16."""
        return type(self)(self.data.short(), *self[1:])

    def char(self) -> PackedSequence:
        """Converts the data to int8."""
        return type(self)(self.data.char(), *self[1:])

    def byte(self) -> PackedSequence:
        """Converts the data to uint8."""
        return self.to(dtype=tensor.uint8)

    def float(self) -> PackedSequence:
        """Converts the data to float32."""
        return self.to(dtype=tensor.float32)

    def double(self) -> PackedSequence:
        """Converts the data to float64."""
        return self.to(dtype=tensor.float64)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Returns the inverse of a permutation, None for None."""
    if permutation is None:
        return None
    places = tensor.arange(permutation.numel(), device=permutation.device)
    return tensor.empty_like(permutation).scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs a padded batch.

    Args:
        input: (T, B, ...), or (B, T, ...) if ``batch_first``.
        lengths: Length of every sequence, a list or an int64 tensor on the CPU.
        batch_first: See ``input``.
        enforce_sorted: Whether the sequences come longest first; otherwise they are sorted, and the order is kept.

    Raises:
        RuntimeError: A length is not positive or exceeds T, their number is not B, or they are not sorted.

    Example:
        >>> batch = taeda.tensor([[1, 2, 3], [4, 5, 0]])
        >>> packed = nn.utils.rnn.pack_padded_sequence(batch, [3, 2], batch_first=True)
        >>> packed.data
        tensor([1, 4, 2, 5, 3])
        >>> packed.batch_sizes
        tensor([2, 2, 1])
    """
    if not isinstance(lengths, Tensor):
        lengths = tensor.tensor([int(n) for n in lengths], dtype=tensor.int64, device="cpu")
    if lengths.dim() != 1:
        raise RuntimeError(
            f"pack_padded_sequence: argument 'lengths' has shape {tuple(lengths.shape)}, expected one dimension"
        )
    if enforce_sorted:
        return PackedSequence(*_pack_padded_sequence(input, lengths, batch_first))
    lengths, order = lengths.sort(descending=True, stable=True)
    order = order.to(device=input.device)
    if order.shape[0] == input.shape[0 if batch_first else 1]:  # the other is told below
        input = input.index_select(0 if batch_first else 1, order)
    return PackedSequence(*_pack_padded_sequence(input, lengths, batch_first), order)


def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """The steps of sequences that come longest first, and how many have each; one step of a recorded graph."""
    if batch_first:
        input = input.transpose(0, 1)
    sizes = [int(n) for n in lengths.tolist()]
    if len(sizes) != input.shape[1]:
        raise RuntimeError(
            f"pack_padded_sequence: {len(sizes)} lengths for a batch of {input.shape[1]} sequences"
        )
    if not sizes or min(sizes) <= 0 or max(sizes) > input.shape[0]:
        raise RuntimeError(
            f"pack_padded_sequence: lengths must lie between 1 and {input.shape[0]}, got {sizes}"
        )
    if sizes != sorted(sizes, reverse=True):
        raise RuntimeError(
            "pack_padded_sequence: `lengths` array must be sorted in decreasing order when `enforce_sorted` is True, "
            f"got {sizes}; or pass enforce_sorted=False"
        )
    running = [sum(size > t for size in sizes) for t in range(sizes[0])]
    data = tensor.cat([input[t, :n] for t, n in enumerate(running)], 0)
    return data, tensor.tensor(running, dtype=tensor.int64, device="cpu")


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Undoes ``pack_padded_sequence``.

    Args:
        sequence: The packed batch.
        batch_first: Whether to return (B, T, ...) instead of (T, B, ...).
        padding_value: What is put behind the shorter sequences.
        total_length: T of the result; at least the longest length, which is the default.

    Returns: the padded batch and the lengths, int64, in the order given to ``pack_padded_sequence``.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([taeda.tensor([1, 2, 3]), taeda.tensor([4, 5])])
        >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 5, 0]]), tensor([3, 2]))
    """
    padded, lengths = _pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length
    )
    if sequence.unsorted_indices is not None:  # the copy has the order of its dimensions in memory too
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.to(device="cpu")]
    return padded, lengths


def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int | None
) -> tuple[Tensor, Tensor]:
    """The padded batch, longest first, and its lengths; one step of a recorded graph."""
    running = batch_sizes.tolist()
    longest, batch = len(running), running[0]
    total = longest if total_length is None else total_length
    if total < longest:
        raise ValueError(
            f"pad_packed_sequence: total_length {total} is less than the longest length {longest}"
        )
    rest = list(data.shape[1:])
    steps = []
    for step, n in zip(data.split(running), running, strict=True):
        if n < batch:
            fill = tensor.full([batch - n, *rest], padding_value, dtype=data.dtype, device=data.device)
            step = tensor.cat([step, fill], 0)
        steps.append(step)
    padded = tensor.stack(steps, 0)
    if total > longest:
        fill = tensor.full(
            [total - longest, batch, *rest], padding_value, dtype=data.dtype, device=data.device
        )
        padded = tensor.cat([padded, fill], 0)
    counts = [sum(n > i for n in running) for i in range(batch)]
    lengths = tensor.tensor(counts, dtype=tensor.int64, device="cpu")
    return (padded.transpose(0, 1) if batch_first else padded), lengths


overridable((_pack_padded_sequence, _pad_packed_sequence))


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stacks tensors (length, ...) of different lengths into (T, B, ...), or (B, T, ...) if ``batch_first``.

    Example:
        >>> nn.utils.rnn.pad_sequence([taeda.tensor([1, 2, 3]), taeda.tensor([4])], batch_first=True)
        tensor([[1, 2, 3],
                [4, 0, 0]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    sequences = list(sequences) if isinstance(sequences, Iterable) else []
    if not sequences:
        raise RuntimeError("pad_sequence: expected at least one tensor in a list or tuple")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"pad_sequence: expected padding_side to be one of 'left' or 'right', found {padding_side!r}"
        )
    for i, s in enumerate(sequences):
        if not isinstance(s, Tensor):
            raise TypeError(
                f"pad_sequence: argument 'sequences': expected Tensor as element {i}, found {type(s).__name__}"
            )
    total = max(s.shape[0] for s in sequences)
    padded = []
    for s in sequences:
        missing = total - s.shape[0]
        if missing:
            fill = tensor.full([missing, *s.shape[1:]], padding_value, dtype=s.dtype, device=s.device)
            s = tensor.cat([s, fill] if padding_side == "right" else [fill, s], 0)
        padded.append(s)
    return tensor.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Undoes ``pad_sequence``: a list of tensors of the given lengths, with memory of their own.

    Example:
        >>> nn.utils.rnn.unpad_sequence(taeda.tensor([[1, 2], [3, 0]]), taeda.tensor([2, 1]), batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[:n].clone() for row, n in zip(padded_sequences.unbind(0), lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of tensors (length, ...).

    Example:
        >>> nn.utils.rnn.pack_sequence([taeda.tensor([1, 2, 3]), taeda.tensor([4, 5])]).data
        tensor([1, 4, 2, 5, 3])
    """
    return pack_padded_sequence(
        pad_sequence(sequences), [s.shape[0] for s in sequences], enforce_sorted=enforce_sorted
    )


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undoes ``pack_sequence``.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([taeda.tensor([1, 2, 3]), taeda.tensor([4, 5])])
        >>> nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2, 3]), tensor([4, 5])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
