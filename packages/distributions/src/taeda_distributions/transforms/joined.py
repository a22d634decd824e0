"""Different transforms for different parts of a tensor, and the transform by a distribution's own function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_distributions import constraints
from taeda_distributions.transforms.base import Transform
from taeda_distributions.utils import sum_rightmost
from taeda_registry.slots import tensor


class CatTransform(Transform):
    """Parts of a dimension, each with its transform.

    Args:
        tseq: The transforms.
        dim: The dimension.
        lengths: Sizes of the parts, 1 each by default.
        cache_size: As in `Transform`.
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Any = None, cache_size: int = 0
    ) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"CatTransform: {len(self.transforms)} transforms and {len(self.lengths)} lengths"
            )
        self.dim = dim

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """Size of the dimension."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Any) -> list[Any]:
        if not -x.dim() <= self.dim < x.dim() or x.size(self.dim) != self.length:
            raise AssertionError(
                f"CatTransform: expected size {self.length} in dimension {self.dim}, found {tuple(x.shape)}"
            )
        return list(x.split(self.lengths, self.dim))

    def _call(self, x: Any) -> Any:
        return tensor.cat(
            [t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)], self.dim
        )

    def _inverse(self, y: Any) -> Any:
        return tensor.cat(
            [t.inv(part) for t, part in zip(self.transforms, self._parts(y), strict=True)], self.dim
        )

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        terms = []
        for t, xs, ys in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            term = t.log_abs_det_jacobian(xs, ys)
            terms.append(sum_rightmost(term, self.event_dim - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return tensor.cat(terms, dim) if dim < 0 else sum(terms)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Slices along a dimension, each with its transform.

    Args:
        tseq: The transforms.
        dim: The dimension.
        cache_size: As in `Transform`.
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms, self.dim = list(tseq), dim

    def with_cache(self, cache_size: int = 1) -> Any:
        return (
            self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)
        )

    def _slices(self, z: Any) -> list[Any]:
        if not -z.dim() <= self.dim < z.dim() or z.size(self.dim) != len(self.transforms):
            raise AssertionError(
                f"StackTransform: expected size {len(self.transforms)} in dimension {self.dim}, found {tuple(z.shape)}"
            )
        return [z.select(self.dim, i) for i in range(z.size(self.dim))]

    def _call(self, x: Any) -> Any:
        return tensor.stack(
            [t(part) for t, part in zip(self.transforms, self._slices(x), strict=True)], self.dim
        )

    def _inverse(self, y: Any) -> Any:
        parts = zip(self.transforms, self._slices(y), strict=True)
        return tensor.stack([t.inv(part) for t, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        parts = zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        return tensor.stack([t.log_abs_det_jacobian(xs, ys) for t, xs, ys in parts], self.dim)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution of numbers.

    Args:
        distribution: The distribution.
        cache_size: As in `Transform`.
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
