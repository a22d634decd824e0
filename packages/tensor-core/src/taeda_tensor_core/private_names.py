"""Functions with a leading underscore that libraries call although they are private elsewhere."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, ops
from taeda_tensor_core._C import Tensor


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes as a tensor of int64."""
    return _C.tensor(list(self.shape), dtype=_C.int64, device="cpu")


def _assert_async(
    self: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero"
) -> None:
    """RuntimeError if the tensor's one element is zero.

    Raises:
        RuntimeError: It is, or there is not one element.
    """
    if self.numel() != 1:
        raise RuntimeError(
            f"Boolean value of Tensor with {'no values' if not self.numel() else 'more than one value'} is ambiguous"
        )
    if not self.item():
        raise RuntimeError(assert_msg)


def _convert_indices_from_coo_to_csr(self: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins among sorted numbers of rows, with the end.

    Example:
        >>> taeda._convert_indices_from_coo_to_csr(taeda.tensor([0, 0, 2]), 3)
        tensor([0, 2, 2, 3])
    """
    places = _C.searchsorted(self, _C.arange(size + 1, dtype=self.dtype, device=self.device))
    return places.to(_C.int32 if out_int32 else _C.int64)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Rows and columns of the elements, of shape (2, number of elements); columns first with `transpose`.

    Raises:
        RuntimeError: `crow_indices` has more than one dimension.
    """
    if crow_indices.dim() != 1:
        raise RuntimeError(
            f"_convert_indices_from_csr_to_coo: argument 'crow_indices' has shape {tuple(crow_indices.shape)}, "
            "expected one dimension"
        )
    rows = _C.arange(crow_indices.numel() - 1, dtype=crow_indices.dtype, device=crow_indices.device)
    rows = rows.repeat_interleave(crow_indices.diff().to(_C.int64))
    pair = [col_indices, rows] if transpose else [rows, col_indices]
    return _C.stack(pair).to(_C.int32 if out_int32 else _C.int64)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of softmax's argument from that of its result and the result itself."""
    return ops.softmax_backward(grad_output, output, dim).to(input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of log_softmax's argument from that of its result and the result itself."""
    return ops.log_softmax_backward(grad_output, output, dim).to(input_dtype)


def _grouped_mm(
    self: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Products of matrices by groups, as mixtures of experts have them.

    Args:
        self: (rows, k), its rows in groups; or (groups, m, k).
        mat2: (groups, k, n); or (k, n), whose rows (with a `self` of two dimensions) or columns are in groups.
        offs: Where each group ends, (groups,); without it both have three dimensions.
        bias: Not offered.
        out_dtype: Dtype of the result; that of `self` by default.

    Returns:
        (rows, n), (groups, m, n) or, for groups among `k`, (groups, m, n).

    Raises:
        RuntimeError: Dimensions that do not belong together.
        NotImplementedError: A bias.
    """
    if bias is not None:
        raise NotImplementedError("_grouped_mm: argument 'bias' is not offered; add it to the result")
    dims = (self.dim(), mat2.dim())
    if dims not in ((2, 2), (2, 3), (3, 2), (3, 3)):
        raise RuntimeError(
            f"_grouped_mm: expected matrices of 2 or 3 dimensions, found {dims[0]} and {dims[1]}"
        )
    if (offs is None) != (dims == (3, 3)):
        raise RuntimeError(
            "_grouped_mm: argument 'offs' is needed where one operand has 2 dimensions, and only there"
        )
    if offs is None:
        result = self @ mat2
    else:
        ends = offs.tolist()
        parts = list(zip([0, *ends[:-1]], ends, strict=True))
        if dims == (2, 3):
            made = [self[a:b] @ mat2[i] for i, (a, b) in enumerate(parts)]
            rest = self.shape[0] - ends[-1]
            result = _C.cat([*made, self.new_zeros((rest, mat2.shape[2]))] if rest else made)
        elif dims == (3, 2):
            made = [self[i] @ mat2[:, a:b] for i, (a, b) in enumerate(parts)]
            rest = mat2.shape[1] - ends[-1]
            result = _C.cat([*made, self.new_zeros((self.shape[1], rest))] if rest else made, 1)
        else:
            result = _C.stack([self[:, a:b] @ mat2[a:b] for a, b in parts])
    return result if out_dtype is None else result.to(out_dtype)


def _matrices(name: str, self: Tensor, mat2: Tensor) -> None:
    if self.dim() != 2 or mat2.dim() != 2 or self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"{name}: expected matrices that can be multiplied, found shapes {tuple(self.shape)} and "
            f"{tuple(mat2.shape)}"
        )


def _int_mm(self: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices of bytes, in int32.

    Args:
        self: (m, k), int8 or uint8.
        mat2: (k, n), int8.
        out: where the product goes, (m, n) and int32.

    Returns: (m, n), int32.

    Raises:
        RuntimeError: Other dtypes, or shapes that do not fit.

    Example:
        >>> ones = taeda.ones(2, 2, dtype=taeda.int8)
        >>> taeda._int_mm(ones, ones).dtype
        taeda.int32
    """
    _matrices("_int_mm", self, mat2)
    if self.dtype not in (_C.int8, _C.uint8):
        raise RuntimeError(f"_int_mm: argument 'self' has dtype {self.dtype}, expected int8 or uint8")
    if mat2.dtype != _C.int8:
        raise RuntimeError(f"_int_mm: argument 'mat2' has dtype {mat2.dtype}, expected int8")
    product = ops.int8_mm(self, mat2)
    if out is None:
        return product
    if out.dtype != _C.int32 or out.shape != product.shape:
        raise RuntimeError(
            f"_int_mm: argument 'out' is of shape {tuple(out.shape)} and dtype {out.dtype}, "
            f"expected {tuple(product.shape)} and int32"
        )
    return out.copy_(product)


def _scaled_mm(
    self: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of two matrices of few bits, each multiplied by its scale; computed in float32.

    Args:
        self: (m, k), of a floating dtype.
        mat2: (k, n), of a floating dtype.
        scale_a: What `self` is multiplied by: one float32, or (m, 1), one for each row.
        scale_b: What `mat2` is multiplied by: one float32, or (1, n), one for each column.
        bias: (n,), added to the product.
        scale_result: Not read.
        out_dtype: Dtype of the result; that of `self` by default.
        use_fast_accum: Not read.

    Returns: (m, n).

    Raises:
        RuntimeError: Shapes or dtypes that do not belong together.
    """
    _matrices("_scaled_mm", self, mat2)
    m, n = self.shape[0], mat2.shape[1]
    for name, scale, whole in (("scale_a", scale_a, (m, 1)), ("scale_b", scale_b, (1, n))):
        if scale.dtype != _C.float32 or (scale.numel() != 1 and tuple(scale.shape) != whole):
            raise RuntimeError(
                f"_scaled_mm: argument '{name}' is {scale.dtype} of shape {tuple(scale.shape)}, expected float32 of "
                f"one element or of shape {whole}"
            )
    if not self.is_floating_point() or not mat2.is_floating_point():
        raise RuntimeError(f"_scaled_mm: expected floating dtypes, found {self.dtype} and {mat2.dtype}")
    result = _C.mm(self.float(), mat2.float())
    for scale in (scale_a, scale_b):
        result = result * (scale.reshape(()) if scale.numel() == 1 else scale)
    if bias is not None:
        result = result + bias
    return result.to(self.dtype if out_dtype is None else out_dtype)


def parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
    tensor: Any = None,
) -> tuple[Any, Any, bool, Any]:
    """What the arguments of `Tensor.to` and `Module.to` say: device, dtype, non_blocking and memory format.

    Raises:
        TypeError: Arguments that `to` does not take.
    """
    given = list(args)
    other = given.pop(0) if given and isinstance(given[0], Tensor) else tensor
    if other is not None:
        device, dtype = other.device, other.dtype
    elif given:
        if isinstance(given[0], _C.dtype):
            dtype = given.pop(0)
        elif given[0] is None or (
            isinstance(given[0], (str, int, _C.device)) and not isinstance(given[0], bool)
        ):
            device = given.pop(0)
            if given and (given[0] is None or isinstance(given[0], _C.dtype)):
                dtype = given.pop(0)
    if given and isinstance(given[0], bool):
        non_blocking = given.pop(0)
    if given and isinstance(given[0], bool):
        given.pop(0)  # whether to copy, which the answer does not hold
    if given:
        raise TypeError(f"to: unexpected argument of type {type(given[0]).__name__}")
    if device is not None and not isinstance(device, _C.device):
        device = _C.device(device)
    return device, dtype, bool(non_blocking), memory_format


def _is_all_true(self: Tensor) -> Tensor:
    """Whether all elements are true, as a tensor."""
    return self.all()


def _is_any_true(self: Tensor) -> Tensor:
    """Whether an element is true, as a tensor."""
    return self.any()


def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether ``input.data = from_`` is taken: both are dense, or both sparse, on devices of one kind."""
    return (input.device.type, input.layout) == (from_.device.type, from_.layout)


def is_alias_of(self: Tensor, other: Tensor) -> bool:
    """Whether two tensors show the same storage; what has none, as tensors of a vmap, is alike with itself alone."""
    if self is other:
        return True
    try:
        return self.untyped_storage()._cdata == other.untyped_storage()._cdata
    except RuntimeError:
        return False


def _amp_foreach_non_finite_check_and_unscale_(self: Any, found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply gradients by `inv_scale`, and set `found_inf` to 1 where one is not finite.

    Args:
        self: The gradients, changed in place.
        found_inf: A tensor of one number.
        inv_scale: A tensor of one number.

    Raises:
        RuntimeError: `found_inf` or `inv_scale` has more than one element.
    """
    for name, item in (("found_inf", found_inf), ("inv_scale", inv_scale)):
        if item.numel() != 1:
            raise RuntimeError(
                f"_amp_foreach_non_finite_check_and_unscale_: argument '{name}' has {item.numel()} elements, expected 1"
            )
    for grad in self:
        if not grad.isfinite().all():
            found_inf.fill_(1.0)
        grad.mul_(inv_scale.to(grad.device))


def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """The scale of losses after a step, in place: less after gradients that were not finite, more after a while.

    Args:
        self: The scale, a tensor of one number.
        growth_tracker: How many steps in a row were finite, an int32 tensor of one number.
        found_inf: Not zero if gradients were not finite.
        scale_growth_factor: By how much the scale grows after `growth_interval` finite steps.
        scale_backoff_factor: By how much it shrinks.
        growth_interval: Number of steps.
    """
    if bool(found_inf):
        self.mul_(scale_backoff_factor)
        growth_tracker.zero_()
        return self
    done = int(growth_tracker) + 1
    if done == growth_interval:
        grown = self * scale_growth_factor
        if bool(grown.isfinite().all()):
            self.copy_(grown)
        done = 0
    growth_tracker.fill_(done)
    return self


def _segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """The same as `segment_reduce`."""
    return _C.segment_reduce(
        data,
        reduce,
        lengths=lengths,
        indices=indices,
        offsets=offsets,
        axis=axis,
        unsafe=unsafe,
        initial=initial,
    )


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Whether in each row of a mask (parts, lines) what holds stands before what does not."""
    return not bool((mask[:, 1:].to(_C.bool) & ~mask[:, :-1].to(_C.bool)).any())


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """The lines of each part at which a mask holds, as a nested tensor.

    Args:
        t: (parts, lines, numbers). mask: (parts, lines), bool, which begins with what holds.
        mask_check: Whether that is checked.

    Raises:
        RuntimeError: Shapes that do not fit, or a mask with gaps.
    """
    from taeda_tensor_core.nested import as_nested_tensor

    if mask.dtype is not _C.bool or t.dim() != 3 or tuple(mask.shape) != tuple(t.shape[:2]):
        raise RuntimeError(
            f"_nested_tensor_from_mask: found a tensor of shape {tuple(t.shape)} and a mask of dtype {mask.dtype} and "
            f"shape {tuple(mask.shape)}, expected three dimensions and a bool mask of the first two"
        )
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("_nested_tensor_from_mask: Mask must be left-aligned without gaps")
    return as_nested_tensor([row[:n] for row, n in zip(t, mask.sum(1).tolist(), strict=True)])
