"""Where taeda and PyTorch differ on purpose or for now, each with its reason."""

from __future__ import annotations

# Values are drawn from generators of different kinds, or memory is not initialised.
RANDOM = {
    "bernoulli", "empty", "empty_like", "empty_strided", "multinomial", "new_empty", "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "normal", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "resize_", "resize_as_",
}  # fmt: skip

_SIGNATURE = "taeda's signature has no such argument: "
_LISTS = "taeda takes one tensor, not a list of them"
_BOOL = "taeda has no overload with 'unbiased' as the second positional argument"
# By name of the operator, or of the operator and its variant.
DIFFERENT: dict[str, str] = {
    "as_strided-partial_views": "the sample shows part of a larger memory, which does not travel to the other library",
    "atleast_1d": _LISTS,
    "atleast_2d": _LISTS,
    "atleast_3d": _LISTS,
    "bucketize": _SIGNATURE + "out_int32",
    "byte": _SIGNATURE + "memory_format",
    "char": _SIGNATURE + "memory_format",
    "diff": _SIGNATURE + "prepend and append",
    "gather": "taeda wants an index of as many dimensions as self, also when it is empty",
    "native_batch_norm": "taeda's operator gives the statistics in evaluation too, and has another signature",
    "native_group_norm": "taeda's operator has another signature",
    "nextafter": "taeda records no gradient: the function is a step of one unit in the last place",
    "nn.functional.batch_norm": "taeda wants a batch and a channel dimension, also when the input is empty",
    "nn.functional.hardsigmoid": "PyTorch multiplies by a sixth in float32",
    "nn.functional.multi_margin_loss": "taeda wants at least one dimension",
    "nn.functional.normalize": "the norm of order 0 is not differentiable here; PyTorch's gradient is zero",
    "nn.functional.pad-circular": "negative amounts are cut off after the wrapped ones were added, in PyTorch before",
    "nonzero": _SIGNATURE + "as_tuple",
    "norm-nuc": "there are no singular values yet",
    "repeat_interleave": _SIGNATURE + "output_size",
    "searchsorted": _SIGNATURE + "out_int32",
    "slice": "taeda calls the end 'stop'",
    "std_mean-unbiased": _BOOL,
    "tensor_split": "taeda takes numbers, not a tensor of them",
    "tensordot": "taeda takes two lists of dims, not one pair of lists",
    "to": _SIGNATURE + "memory_format",
    "var_mean-unbiased": _BOOL,
}


# Relative tolerance where the formula of both libraries loses digits.
LOOSE = {("logcumsumexp", "float32"): 1e-2}


def _drops_out(sample) -> bool:
    return sample.kwargs.get("dropout_p", 0) > 0


# Samples that cannot be compared: random ones.
SKIPPED_SAMPLES = {"nn.functional.scaled_dot_product_attention": _drops_out}
