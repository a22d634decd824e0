"""The samples on which taeda and PyTorch differ on purpose or for now, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

# Values are drawn from generators of different kinds, or memory is not initialised.
RANDOM = {
    "bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided", "exponential", "geometric",
    "log_normal", "multinomial", "new_empty", "new_empty_strided", "uniform",
    "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.rrelu", "normal", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "resize_", "resize_as_",
}  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """Samples on which taeda must not do what PyTorch does.

    Attributes:
        reason: Why.
        words: Regular expression found in the error, "Type: text", that comparing such a sample gives.
        samples: Their numbers; None for all of them.
        dtype: The one dtype it is about, or both.
    """

    reason: str
    words: str
    samples: tuple[int, ...] | None = None
    dtype: str | None = None

    def holds_for(self, number: int, dtype: str) -> bool:
        return self.dtype in (None, dtype) and (self.samples is None or number in self.samples)


# By name of the operator, or of the operator and its variant.
DIFFERENT: dict[str, Difference] = {
    "gather": Difference(
        "an index of another number of dimensions is an error even when it is empty, where a shape is easily wrong",
        "as many dimensions as 'self'",
        (4,),
    ),
    "nn.functional.hardsigmoid": Difference(
        "PyTorch multiplies the float64 gradient by a sixth rounded to float32", "gradient 0", (0,), "float64"
    ),
    "norm-nuc": Difference("there are no singular values yet", "'nuc'"),
}

# Functions of no useful gradient, which PyTorch refuses only when it is asked for: values are compared alone.
VALUES_ONLY = {"nextafter"}


# Relative tolerance where the formula of both libraries loses digits.
LOOSE = {("logcumsumexp", "float32"): 1e-2}


def _drops_out(sample) -> bool:
    return sample.kwargs.get("dropout_p", 0) > 0


# Samples that cannot be compared: random ones.
SKIPPED_SAMPLES = {"nn.functional.scaled_dot_product_attention": _drops_out}
