"""Parts of functions that programs import which continue PyTorch's own, as copies of its attention do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_nn import _reduction as _Reduction
from taeda_nn._bind import Tensor, tensor
from taeda_nn.functional.attention import _added_mask, _check_ranks, _project_packed, _projected

__all__ = [
    "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES",
    "DType",
    "Tensor",
    "_Reduction",
    "_canonical_mask",
    "_check_key_padding_mask",
    "_get_softmax_dim",
    "_in_projection",
    "_in_projection_packed",
    "_mha_shape_check",
    "_none_or_dtype",
    "_verify_batch_size",
    "_verify_spatial_size",
    "assert_int_or_pair",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
]


DType = int
#: Numbers of the words that `grid_sample` takes.
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """AssertionError with ``message``, in which ``{}`` is the argument's name, for what is no number and no pair."""
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))


def _overrides() -> Any:
    """Looked up when a program asks: from then on all public functions look for arguments that answer for them."""
    return getattr(tensor, "overrides", None)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> list[Tensor]:
    """Query, key and value through the three blocks of one weight, (3 E, E), and one bias, (3 E,)."""
    return _project_packed(q, k, v, w, b)


def _in_projection(
    q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor,
    b_q: Tensor | None = None, b_k: Tensor | None = None, b_v: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Query, key and value through a weight each."""
    return tuple(_projected((q, k, v), (w_q, w_k, w_v), (b_q, b_k, b_v)))


def _check_key_padding_mask(key_padding_mask: Tensor, src_len: int, bsz: int) -> None:
    """AssertionError for a mask whose shape is not (bsz, src_len)."""
    for dim, expected in enumerate((bsz, src_len)):
        found = key_padding_mask.shape[dim]
        assert found == expected, f"expected key_padding_mask.shape[{dim}] to be {expected}, found {found}"


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None,
    num_heads: int,
) -> bool:  # fmt: skip
    """Whether the inputs of attention are batched.

    Raises:
        AssertionError: An `attn_mask` of another rank, or one of three dimensions that does not fit an unbatched query.
        RuntimeError: Ranks of the others that do not fit one another.
    """
    batched = _check_ranks(query, key, value, key_padding_mask)
    if attn_mask is not None:
        assert attn_mask.dim() in (2, 3), (
            f"argument 'attn_mask' must have 2 or 3 dimensions, found shape {tuple(attn_mask.shape)}"
        )
        expected = (num_heads, query.shape[0], key.shape[0])
        assert batched or attn_mask.dim() == 2 or tuple(attn_mask.shape) == expected, (
            f"argument 'attn_mask' must have shape {expected}, found {tuple(attn_mask.shape)}"
        )
    return batched


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True
) -> Tensor | None:  # fmt: skip
    """A mask as numbers to add to scores: -inf where a mask of booleans is True.

    Raises:
        RuntimeError: It is of neither a floating dtype nor bool.
    """
    return _added_mask(mask, mask_name, target_type)


def _none_or_dtype(input: Tensor | None) -> Any:
    """The dtype of a tensor; None for None."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that older programs mean when they give softmax none."""
    return 0 if ndim in (0, 1, 3) else 1


def _verify_batch_size(size: Sequence[int]) -> None:
    """ValueError if a batch has one value for each channel, whose spread is not defined."""
    count = size[0]
    for each in size[2:]:
        count *= each
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {tuple(size)}"
        )


def _verify_spatial_size(size: Sequence[int]) -> None:
    """ValueError if a sample has one value for each channel."""
    count = 1
    for each in size[2:]:
        count *= each
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {tuple(size)}")


def has_torch_function(relevant_args: Any) -> bool:
    """Whether one of the arguments answers for public functions itself (`__torch_function__`)."""
    overrides = _overrides()
    return overrides is not None and overrides.has_torch_function(relevant_args)


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """Whether an argument answers for public functions itself."""
    return has_torch_function((relevant_arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """Whether one of the arguments answers for public functions itself."""
    return has_torch_function(relevant_args)


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Ask the arguments that answer for public functions for the result of one."""
    return _overrides().handle_torch_function(public_api, relevant_args, *args, **kwargs)
