"""Products of matrices that were scaled to fit into few bits."""

from __future__ import annotations

import enum
from typing import Any

from taeda_nn._bind import Tensor, tensor

__all__ = ["ScalingType", "SwizzleType", "scaled_grouped_mm", "scaled_mm"]

# Other providers of tensors may lack it.
_BFLOAT16 = getattr(tensor, "bfloat16", None)


class ScalingType(enum.IntEnum):
    """How many elements share a scale: all, those of a row, or those of a block."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """The order in which the scales of blocks lie."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _only(op: str, name: str, given: Any) -> Any:
    """The one scale, or the one recipe, that an operand has."""
    if isinstance(given, (list, tuple)):
        if len(given) != 1:
            raise ValueError(
                f"{op}: argument '{name}' has {len(given)} entries, expected one for each operand"
            )
        return given[0]
    return given


def _scale(op: str, name: str, scale: Any, recipe: Any, swizzle: Any, whole: tuple[int, ...]) -> Tensor:
    """The factors of an operand, checked against what its recipe says."""
    scale, recipe = _only(op, f"scale_{name}", scale), _only(op, f"scale_recipe_{name}", recipe)
    if recipe not in (ScalingType.TensorWise, ScalingType.RowWise):
        raise ValueError(
            f"{op}: argument 'scale_recipe_{name}' is {recipe!r}, expected TensorWise or RowWise"
        )
    if swizzle and _only(op, f"swizzle_{name}", swizzle) is not SwizzleType.NO_SWIZZLE:
        raise ValueError(f"{op}: argument 'swizzle_{name}' is {swizzle}, expected SwizzleType.NO_SWIZZLE")
    shape = tuple(scale.shape)
    if scale.numel() != 1 if recipe is ScalingType.TensorWise else shape != whole:
        wanted = "one element" if recipe is ScalingType.TensorWise else f"shape {whole}"
        raise ValueError(f"{op}: argument 'scale_{name}' has shape {shape}, expected {wanted} for {recipe}")
    return scale


def _product(
    op: str, mat_a: Tensor, mat_b: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None, dtype: Any
) -> Tensor:
    """The product of two matrices and of their factors."""
    if mat_a.dim() != 2 or mat_b.dim() != 2 or mat_a.shape[1] != mat_b.shape[0]:
        raise RuntimeError(
            f"{op}: found shapes {tuple(mat_a.shape)} and {tuple(mat_b.shape)}, expected matrices that fit each other"
        )
    if not (mat_a.is_floating_point() and mat_b.is_floating_point()):
        raise RuntimeError(f"{op}: found dtypes {mat_a.dtype} and {mat_b.dtype}, expected floating ones")
    made = mat_a.float() @ mat_b.float()
    for scale in (scale_a, scale_b):
        made = made * (scale.reshape(()) if scale.numel() == 1 else scale)
    return (made if bias is None else made + bias).to(mat_a.dtype if dtype is None else dtype)


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    output_dtype: Any = _BFLOAT16,
    contraction_dim: list[int] | tuple[int, ...] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of two matrices of few bits, each multiplied by its scales; computed in float32.

    Args:
        mat_a: (M, K), of a floating dtype such as float8_e4m3fn.
        mat_b: (K, N), of a floating dtype.
        scale_a: Factors of ``mat_a``, float32: one, or (M, 1).
        scale_recipe_a: ``ScalingType.TensorWise`` for one factor, ``RowWise`` for one a row.
        scale_b: Factors of ``mat_b``, float32: one, or (1, N).
        scale_recipe_b: What ``scale_b`` is.
        swizzle_a: None or ``SwizzleType.NO_SWIZZLE``.
        swizzle_b: None or ``SwizzleType.NO_SWIZZLE``.
        bias: (N,), added to the product.
        output_dtype: Of the result; None for that of ``mat_a``.
        contraction_dim: Empty; the inner dimensions are summed over.
        use_fast_accum: Not read: sums are in float32.

    Returns: (M, N).

    Raises:
        ValueError: Scales that do not fit their recipes, and recipes of blocks.
        RuntimeError: Shapes or dtypes that do not belong together.

    Example:
        >>> a = taeda.ones(2, 3).to(taeda.float8_e4m3fn)
        >>> half, kind = taeda.tensor(0.5), ScalingType.TensorWise
        >>> scaled_mm(a, a.t(), half, kind, half, kind, output_dtype=taeda.float32)
        tensor([[0.7500, 0.7500],
                [0.7500, 0.7500]])
    """
    if len(contraction_dim):
        raise ValueError(f"scaled_mm: argument 'contraction_dim' is {contraction_dim}, expected ()")
    a = _scale("scaled_mm", "a", scale_a, scale_recipe_a, swizzle_a, (mat_a.shape[0], 1))
    b = _scale("scaled_mm", "b", scale_b, scale_recipe_b, swizzle_b, (1, mat_b.shape[-1]))
    return _product("scaled_mm", mat_a, mat_b, a, b, bias, output_dtype)


def scaled_grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    offs: Tensor | None = None,
    output_dtype: Any = _BFLOAT16,
    contraction_dim: list[int] | tuple[int, ...] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """Products of rows that belong together with a matrix for each group, as in mixtures of experts.

    Args:
        mat_a: (rows of all groups, K), of a floating dtype such as float8_e4m3fn.
        mat_b: (groups, K, N), of a floating dtype.
        scale_a: (rows of all groups,), float32.
        scale_recipe_a: ``ScalingType.RowWise``.
        scale_b: (groups, N), float32.
        scale_recipe_b: ``ScalingType.RowWise``.
        swizzle_a: None or ``SwizzleType.NO_SWIZZLE``.
        swizzle_b: None or ``SwizzleType.NO_SWIZZLE``.
        bias: Not there, as in PyTorch.
        offs: (groups,), where each group's rows end.
        output_dtype: Of the result; None for that of ``mat_a``.
        contraction_dim: Empty; the inner dimensions are summed over.
        use_fast_accum: Not read: sums are in float32.

    Returns: (rows of all groups, N).

    Raises:
        ValueError: Scales that do not fit their recipes, and recipes other than of rows.
        RuntimeError: Shapes or dtypes that do not belong together.

    Example:
        >>> a, b = taeda.ones(5, 3), taeda.ones(2, 3, 4)
        >>> ends, rows = taeda.tensor([2, 5]), ScalingType.RowWise
        >>> scaled_grouped_mm(a, b, taeda.ones(5), rows, taeda.ones(2, 4), rows, offs=ends).shape
        Size([5, 4])
    """
    if mat_a.dim() != 2 or mat_b.dim() != 3 or offs is None or bias is not None or len(contraction_dim):
        raise RuntimeError(
            f"scaled_grouped_mm: found shapes {tuple(mat_a.shape)} and {tuple(mat_b.shape)}, expected (rows, K) and "
            "(groups, K, N) with 'offs', without 'bias' and 'contraction_dim'"
        )
    groups = mat_b.shape[0]
    a = _scale("scaled_grouped_mm", "a", scale_a, scale_recipe_a, swizzle_a, (mat_a.shape[0],))
    b = _scale("scaled_grouped_mm", "b", scale_b, scale_recipe_b, swizzle_b, (groups, mat_b.shape[2]))
    ends = offs.tolist()
    if len(ends) != groups:
        raise RuntimeError(
            f"scaled_grouped_mm: argument 'offs' has {len(ends)} entries, expected {groups}, one a group"
        )
    spans = zip([0, *ends[:-1]], ends, strict=True)
    rows = a.reshape(-1, 1).expand(mat_a.shape[0], 1)
    return tensor.cat(
        [
            _product(
                "scaled_grouped_mm",
                mat_a[low:high],
                mat_b[i],
                rows[low:high],
                b[i : i + 1],
                None,
                output_dtype,
            )
            for i, (low, high) in enumerate(spans)
        ]
    )
