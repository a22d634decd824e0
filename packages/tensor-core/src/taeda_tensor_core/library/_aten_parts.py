"""Parts of PyTorch's functions that programs name beside its operators: `torch._softmax`, `aten.upsample_nearest2d`.

Each is a function with its schema; `taeda.ops.aten` makes operators of them when they are asked for, and names with an
underscore are functions of the package too. Vendors' variants compute what the plain operators compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C, _lazy, _older_names, ops

#: By name: schema from the parenthesis on, and function, which gets its arguments in their order.
PARTS: dict[str, tuple[str, Callable[..., Any]]] = {}
#: Functions that no schema of the operator table can tell, by name.
FUNCTIONS: dict[str, Callable[..., Any]] = {}
#: What is known of their arguments nevertheless.
SCHEMAS: dict[str, str] = {}


def part(schema: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function of the operator that `schema` names."""
    name, _, rest = schema.partition("(")

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        if "bool[]" in rest or rest.endswith("[]"):
            FUNCTIONS[name], SCHEMAS[name] = function, schema
        else:
            PARTS[name] = f"({rest}", function
        return function

    return put


def _mask_of(output_mask: Any) -> int:
    return sum(1 << i for i, wanted in enumerate(output_mask) if wanted)


# --- softmax ---


@part("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
def _softmax(self: Any, dim: int, half_to_float: bool) -> Any:
    return _C.softmax(self, dim, dtype=_C.float32 if half_to_float else None)


@part("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
def _log_softmax(self: Any, dim: int, half_to_float: bool) -> Any:
    return _C.log_softmax(self, dim, dtype=_C.float32 if half_to_float else None)


@part("_safe_softmax(Tensor self, int dim, DType? dtype=None) -> Tensor")
def _safe_softmax(self: Any, dim: int, dtype: Any = None) -> Any:
    """`softmax`, but 0 where all of a line is minus infinity."""
    nothing = (self == -float("inf")).all(dim, keepdim=True)
    return _C.softmax(self.masked_fill(nothing, 0), dim, dtype=dtype).masked_fill(nothing, 0)


@part("_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor")
def _masked_softmax(self: Any, mask: Any, dim: int | None = None, mask_type: int | None = None) -> Any:
    """`softmax` of the elements where `mask` is False."""
    spread = mask if mask.shape == self.shape else mask.broadcast_to(self.shape)
    return _safe_softmax(self.masked_fill(spread, -float("inf")), self.dim() - 1 if dim is None else dim)


# --- normalisation ---


@part(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, "
    "Tensor? weight, Tensor? bias, bool[] output_mask) -> (Tensor, Tensor, Tensor)"
)
def _layer_norm_backward(
    grad_out: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, output_mask: Any
) -> Any:  # fmt: skip
    mask = _mask_of(output_mask)
    return ops.layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, mask)


@part(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a! if training) running_mean, "
    "Tensor(b! if training) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)"
)
def _batch_norm_legit(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    return _C.native_batch_norm(input, weight, bias, mean, var, training, momentum, eps)


@part(
    "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
    "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)"
)
def _batch_norm_no_training(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float
) -> Any:
    return _C.native_batch_norm(input, weight, bias, mean, var, False, momentum, eps)


@part("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)")
def _fused_rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    dims = list(range(-len(normalized_shape), 0))
    least = _C.finfo(input.dtype).eps if eps is None else eps
    rstd = (
        input.to(_C.promote_types(input.dtype, _C.float32)).square().mean(dims, keepdim=True) + least
    ).rsqrt()
    return ops.rms_norm(input, normalized_shape, weight, eps), rstd


@part("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor")
def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """`v` scaled so that its norms over all dimensions but `dim` are `g`."""
    return _weight_norm_interface(v, g, dim)[0]


@part("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)")
def _weight_norm_interface(v: Any, g: Any, dim: int = 0) -> Any:
    from taeda_tensor_core.composed_names import norm_except_dim

    norms = norm_except_dim(v, 2, dim)
    return v * (g / norms), norms


# --- attention ---


def _attention(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: float, is_causal: bool, scale: float | None
) -> tuple[Any, Any]:
    """The result and the logarithms of the sums of exponentials."""
    made = ops.scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale=scale)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        ahead = _C.ones(scores.shape[-2:], dtype=_C.bool, device=query.device).triu(1)
        scores = scores.masked_fill(ahead, -float("inf"))
    if mask is not None:
        scores = scores.masked_fill(~mask, -float("inf")) if mask.dtype == _C.bool else scores + mask
    return made, scores.float().logsumexp(-1)


@part(
    "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, "
    "bool enable_gqa=False) -> (Tensor, Tensor)"
)
def _attention_math(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    dropout_mask: Any = None, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """The result of attention, and its weights."""
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        ahead = _C.ones(scores.shape[-2:], dtype=_C.bool, device=query.device).triu(1)
        scores = scores.masked_fill(ahead, -float("inf"))
    if attn_mask is not None:
        dense = attn_mask.dtype == _C.bool
        scores = scores.masked_fill(~attn_mask, -float("inf")) if dense else scores + attn_mask
    weights = _safe_softmax(scores, -1)
    if dropout_mask is not None:
        weights = weights.masked_fill(~dropout_mask, 0) / (1 - dropout_p)
    elif dropout_p:
        weights = _C.dropout(weights, dropout_p, True)
    return weights @ value, weights


@part(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
    "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor, Tensor)"
)
def _flash_attention_for_cpu(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, attn_mask: Any = None,
    scale: float | None = None,
) -> Any:  # fmt: skip
    return _attention(query, key, value, attn_mask, dropout_p, is_causal, scale)


@part(
    "_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
    "bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor, Tensor)"
)
def _flash_attention(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False,
    return_debug_mask: bool = False, scale: float | None = None,
) -> Any:  # fmt: skip
    return _attention(query, key, value, None, dropout_p, is_causal, scale)


_EFFICIENT = (
    "(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, "
    "bool is_causal=False, {}*, float? scale=None) -> (Tensor, Tensor)"
)


@part(f"_scaled_dot_product_efficient_attention{_EFFICIENT.format('')}")
def _efficient_attention(
    query: Any, key: Any, value: Any, attn_bias: Any, compute_log_sumexp: bool, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None,
) -> Any:  # fmt: skip
    return _attention(query, key, value, attn_bias, dropout_p, is_causal, scale)


@part(f"_scaled_dot_product_cudnn_attention{_EFFICIENT.format('bool return_debug_mask=False, ')}")
def _cudnn_attention(
    query: Any, key: Any, value: Any, attn_bias: Any, compute_log_sumexp: bool, dropout_p: float = 0.0,
    is_causal: bool = False, return_debug_mask: bool = False, scale: float | None = None,
) -> Any:  # fmt: skip
    return _attention(query, key, value, attn_bias, dropout_p, is_causal, scale)


# --- products ---


@part(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False)"
    " -> Tensor"
)
def _addmm_activation(
    self: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False
) -> Any:
    made = _C.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return ops.gelu(made, approximate="tanh") if use_gelu else _C.relu(made)


@part("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor")
def _euclidean_dist(x1: Any, x2: Any) -> Any:
    return _C.cdist(x1, x2)


_CONV_BACKWARD = (
    "(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, int[] stride, int[] padding, int[] dilation, "
    "bool transposed, int[] output_padding, int groups, bool[] output_mask) -> (Tensor, Tensor, Tensor)"
)


@part(f"convolution_backward{_CONV_BACKWARD}")
def _convolution_backward(
    grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Any,
) -> Any:  # fmt: skip
    """Gradients of a convolution's input, weight and bias."""
    flat = weight.dim() == 3  # a sequence is an image of one line
    if flat:
        grad_output, input, weight = (x.unsqueeze(-2) for x in (grad_output, input, weight))
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    backward = ops.conv3d_backward if weight.dim() == 5 else ops.conv2d_backward
    if not transposed:
        grads = backward(grad_output, input, weight, stride, padding, dilation, groups, _mask_of(output_mask))
    else:  # what a transposed convolution takes is what the plain one gives
        plain = _C.conv3d if weight.dim() == 5 else _C.conv2d
        of_input = plain(grad_output, weight, None, stride, padding, dilation, groups)
        of_weight = backward(input, grad_output, weight, stride, padding, dilation, groups, 2)[1]
        others = [d for d in range(grad_output.dim()) if d != 1]
        grads = (of_input, of_weight, grad_output.sum(others))
    return (*(g.squeeze(-2) if flat else g for g in grads[:2]), grads[2])


# --- windows and sizes ---


@part("_adaptive_avg_pool2d(Tensor self, int[] output_size) -> Tensor")
def _adaptive_avg_pool2d(self: Any, output_size: Any) -> Any:
    return ops.adaptive_avg_pool2d(self, output_size)


@part("_adaptive_avg_pool3d(Tensor self, int[] output_size) -> Tensor")
def _adaptive_avg_pool3d(self: Any, output_size: Any) -> Any:
    return ops.adaptive_avg_pool3d(self, output_size)


@part("_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor")
def _adaptive_avg_pool2d_backward(grad_output: Any, self: Any) -> Any:
    return ops.adaptive_avg_pool2d_backward(grad_output, self)


def _upsample(name: str, mode: str, dims: int, corners: bool, antialias: bool = False) -> None:
    """`upsample_...`: a call of `resample` with the scales that sizes follow from where they were given."""
    axes = [f"scales_{a}" for a in "dhw"[3 - dims :]] if dims > 1 else ["scales"]
    schema = f"{name}(Tensor self, int[] output_size, {'bool align_corners, ' * corners}"

    @part(schema + ", ".join(f"float? {axis}=None" for axis in axes) + ") -> Tensor")
    def upsample(self: Any, output_size: Any, *rest: Any, **named: Any) -> Any:
        factors = named.pop("scale_factors", None)
        given = [*rest, *(named.values() if factors is None else (named["align_corners"], *factors))]
        if output_size is None and factors is not None:
            output_size = [int(size * factor) for size, factor in zip(self.shape[2:], factors, strict=True)]
        aligned, scales = (given[0], given[1:]) if corners else (False, given)
        known = [float(s) for s in scales if s is not None]
        return ops.resample(self, output_size, mode, aligned, antialias, known if len(known) == dims else [])


for _dims, _linear in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    _upsample(f"upsample_nearest{_dims}d", "nearest", _dims, False)
    _upsample(f"_upsample_nearest_exact{_dims}d", "nearest-exact", _dims, False)
    _upsample(f"upsample_{_linear}{_dims}d", "linear", _dims, True)
_upsample("upsample_bicubic2d", "cubic", 2, True)
_upsample("_upsample_bilinear2d_aa", "linear", 2, True, True)
_upsample("_upsample_bicubic2d_aa", "cubic", 2, True, True)


def _padding(mode: str, dims: int) -> None:
    name = {"reflect": "reflection", "replicate": "replication"}[mode]

    @part(f"{name}_pad{dims}d(Tensor self, int[] padding) -> Tensor")
    def pad(self: Any, padding: Any) -> Any:
        return ops.pad(self, padding, mode)


for _dims in (1, 2, 3):
    _padding("reflect", _dims)
    _padding("replicate", _dims)


# --- tables and places ---


@part(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C, "
    "int HxW, int group, bool[] output_mask) -> (Tensor, Tensor, Tensor)"
)
def _group_norm_backward(
    grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int, group: int, output_mask: Any
) -> Any:  # fmt: skip
    return ops.group_norm_backward(grad_out, input, group, mean, rstd, weight, _mask_of(output_mask))


@part(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, "
    "bool scale_grad_by_freq) -> Tensor"
)
def _embedding_dense_backward(
    grad_output: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    return ops.embedding_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)


@part(
    "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
    "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> "
    "(Tensor, Tensor, Tensor, Tensor)"
)
def _embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: int = -1,
) -> Any:  # fmt: skip
    left_out = None if padding_idx < 0 else padding_idx
    return _C.embedding_bag(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        left_out,
    )


@part("_unsafe_index(Tensor self, Tensor?[] indices) -> Tensor")
def _unsafe_index(self: Any, indices: Any) -> Any:
    return self[tuple(slice(None) if i is None else i for i in indices)]


@part("_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
def _unsafe_index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return ops.index_put(self, indices, values, accumulate)


@part(
    "slice_backward(Tensor grad_output, int[] input_sizes, int dim, int start, int end, int step) -> Tensor"
)
def _slice_backward(grad_output: Any, input_sizes: Any, dim: int, start: int, end: int, step: int) -> Any:
    made = grad_output.new_zeros(input_sizes)
    ops.slice(made, dim, start, end, step).copy_(grad_output)
    return made


@part("select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor")
def _select_backward(grad_output: Any, input_sizes: Any, dim: int, index: int) -> Any:
    made = grad_output.new_zeros(input_sizes)
    made.select(dim, index).copy_(grad_output)
    return made


@part("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
      "(Tensor, Tensor, Tensor)")  # fmt: skip
def _unique2(
    self: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    from taeda_tensor_core import unique

    values, inverse, counts = unique(self, sorted, True, True)
    nothing = _C.empty((0,), dtype=_C.int64)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


@part("_stack(Tensor[] tensors, int dim=0) -> Tensor")
def _stack(tensors: Any, dim: int = 0) -> Any:
    return _C.stack(list(tensors), dim)


@part("_aminmax(Tensor self) -> (Tensor, Tensor)")
def _aminmax(self: Any) -> Any:
    return tuple(_C.aminmax(self))


# --- what is no tensor ---

FUNCTIONS |= {
    "dim": _C.Tensor.dim,
    "numpy_T": lambda self: self.permute(*range(self.ndim)[::-1]),
    "is_same_size": lambda self, other: self.shape == other.shape,
    "item": _C.Tensor.item,
    "_local_scalar_dense": _C.Tensor.item,
    "sym_is_contiguous": lambda self, memory_format=None: self.is_contiguous(),
    "sym_numel": _C.Tensor.numel,
    "sym_size": lambda self, dim=None: self.shape if dim is None else self.shape[dim],
    "sym_storage_offset": _C.Tensor.storage_offset,
    "sym_stride": lambda self, dim=None: self.stride() if dim is None else self.stride(dim),
}

# --- what private functions of the package are ---

for _known, _schema in {
    "_convert_weight_to_int4pack_for_cpu": "(Tensor self, int innerKTiles) -> Tensor",
    "_int_mm": "(Tensor self, Tensor mat2) -> Tensor",
    "_is_all_true": "(Tensor self) -> Tensor",
    "_is_any_true": "(Tensor self) -> Tensor",
    "_scaled_mm": "(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
    "Tensor? scale_result=None, DType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    "_shape_as_tensor": "(Tensor self) -> Tensor",
    "_softmax_backward_data": "(Tensor grad_output, Tensor output, int dim, DType input_dtype) -> Tensor",
    "_weight_int4pack_mm_for_cpu": "(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
    "_weight_int8pack_mm": "(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
    "_log_softmax_backward_data": "(Tensor grad_output, Tensor output, int dim, DType input_dtype) -> Tensor",
}.items():
    PARTS[_known] = _schema, _lazy.find(_known, {})


# --- distances ---

_DISTANCES = (None, "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@part("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor")
def _cdist_forward(x1: Any, x2: Any, p: float, compute_mode: int | None) -> Any:
    return _C.cdist(x1, x2, p, _DISTANCES[compute_mode or 0] or "use_mm_for_euclid_dist_if_necessary")


@part("_pdist_forward(Tensor self, float p=2.0) -> Tensor")
def _pdist_forward(self: Any, p: float = 2.0) -> Any:
    return ops.pdist(self, p)


# --- what changes nothing, and copies ---


def _itself(name: str) -> None:
    @part(f"{name}(Tensor(a) self) -> Tensor(a)")
    def same(self: Any) -> Any:
        return self.view(self.shape) if self.is_contiguous() else self.as_strided(self.shape, self.stride())


for _name in ("lift", "lift_fresh", "resolve_conj", "resolve_neg"):
    _itself(_name)


@part("lift_fresh_copy(Tensor self) -> Tensor")
def _lift_fresh_copy(self: Any) -> Any:
    return self.clone()


@part("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor")
def _copy(self: Any, src: Any, non_blocking: bool = False) -> Any:
    return self.clone().copy_(src, non_blocking)


@part("_reshape_alias(Tensor(a) self, int[] size, int[] stride) -> Tensor(a)")
def _reshape_alias(self: Any, size: Any, stride: Any) -> Any:
    return self.as_strided(size, stride)


@part("_conj(Tensor self) -> Tensor")
def _conj(self: Any) -> Any:
    return _C.conj(self)


@part("_conj_physical(Tensor self) -> Tensor")
def _conj_physical(self: Any) -> Any:
    return _C.conj(self)


@part("type_as(Tensor self, Tensor other) -> Tensor")
def _type_as(self: Any, other: Any) -> Any:
    return self.to(other.dtype)


@part("to(Tensor self, DType dtype, bool non_blocking=False, bool copy=False) -> Tensor")
def _to(self: Any, dtype: Any, non_blocking: bool = False, copy: bool = False) -> Any:
    return self.to(dtype, non_blocking, copy=copy)


def _cast(name: str, dtype: Any) -> None:
    @part(f"_cast_{name}(Tensor self, bool non_blocking=False) -> Tensor")
    def cast(self: Any, non_blocking: bool = False) -> Any:
        return self.to(dtype)


for _dtype in ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"):
    _cast(_older_names.WORDS[_dtype], getattr(_C, _dtype))


def _drawn(name: str, arguments: str) -> None:
    """The random numbers of a method in place, as a new tensor."""

    @part(f"{name}(Tensor self, {arguments}, *, Generator? generator=None) -> Tensor")
    def draw(self: Any, *args: Any) -> Any:
        return getattr(_C.empty_like(self), f"{name}_")(*args[:-1], generator=args[-1])


for _name, _arguments in (("uniform", "float from=0.0, float to=1.0"), ("exponential", "float lambd=1.0"),
                          ("cauchy", "float median=0.0, float sigma=1.0"), ("geometric", "float p"),
                          ("log_normal", "float mean=1.0, float std=2.0")):  # fmt: skip
    _drawn(_name, _arguments)
