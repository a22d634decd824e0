"""Sizes and tensors drawn at random, for timing over many of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

# More draws than this without one that meets the constraints: there is none.
_TRIES = 100


class ParameterAlias:
    """In a distribution, the value of another parameter.

    Args:
        alias_to: Its name.
    """

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number that is drawn anew each time.

    Args:
        name: Its name.
        minval: Least value.
        maxval: Greatest value.
        distribution: "uniform", "loguniform", or chances by value.
        strict: Whether it may not be replaced by another source of parameters.

    Raises:
        ValueError: The distribution is none of these, its bounds are missing, or its chances are not.
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | Mapping[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        if distribution is None:
            raise ValueError("FuzzedParameter: argument 'distribution' is missing")
        if isinstance(distribution, str):
            if distribution not in ("uniform", "loguniform"):
                raise ValueError(f"Unknown distribution: {distribution}")
            if minval is None or maxval is None:
                raise ValueError(f"FuzzedParameter: {distribution} needs 'minval' and 'maxval'")
            if distribution == "loguniform" and minval <= 0:
                raise ValueError(f"FuzzedParameter: loguniform needs a positive 'minval', found {minval}")
        else:
            total = sum(distribution.values())
            if any(chance < 0 for chance in distribution.values()) or not math.isclose(
                total, 1, abs_tol=1e-6
            ):
                raise ValueError(
                    f"FuzzedParameter: chances must be at least 0 and sum to 1, found sum {total}"
                )
        self._distribution = distribution

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def sample(self, state: Any) -> Any:
        """A value, drawn by a `numpy.random.RandomState`."""
        if isinstance(self._distribution, str):
            low, high = self._minval, self._maxval
            assert low is not None and high is not None
            whole = isinstance(low, int) and isinstance(high, int)
            if self._distribution == "uniform":
                return int(state.randint(low, high + 1)) if whole else state.uniform(low, high)
            value = 2 ** state.uniform(math.log2(low), math.log2(high))
            return int(value) if whole else value
        values = list(self._distribution)
        return values[state.choice(len(values), p=list(self._distribution.values()))]


class FuzzedTensor:
    """A tensor whose sizes, steps and strides are parameters.

    Args:
        name: Its name.
        size: Sizes: numbers, or names of parameters.
        steps: Steps between elements along each dimension, so that it is a part of a larger tensor.
        probability_contiguous: How often its dimensions stand in order.
        min_elements, max_elements: Bounds of its number of elements.
        max_allocation_bytes: Bound of the memory of the whole tensor that it is a part of.
        dim_parameter: Name of the parameter that says how many of the sizes count.
        roll_parameter: Name of the parameter by which dimensions are rolled.
        dtype: Its dtype.
        cuda: Whether it lies on a CUDA device.
        tensor_constructor: What makes it, of `size`, `dtype` and the parameters; random numbers by default.
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: Any = None,
        cuda: bool = False,
        tensor_constructor: Callable[..., Any] | None = None,
    ) -> None:
        self._name, self._size, self._steps = name, size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._dtype = tensor.float32 if dtype is None else dtype
        self._cuda, self._tensor_constructor = cuda, tensor_constructor

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Any, dtype: Any, **_: Any) -> Any:
        """Random numbers; of integer dtypes up to 127."""
        if dtype.is_floating_point or dtype.is_complex:
            return tensor.rand(size=size, dtype=dtype, device="cpu")
        return tensor.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _resolved(self, items: tuple[Any, ...], params: dict[str, Any], count: int) -> tuple[int, ...]:
        return tuple(params.get(item, item) for item in items)[:count]

    def _sizes(self, params: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Sizes, those of the whole tensor, and steps."""
        count = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]
        size = self._resolved(self._size, params, count)
        steps = self._resolved(self._steps or (), params, count)
        steps = tuple(steps[i] if i < len(steps) else 1 for i in range(len(size)))
        return size, tuple(n * step for n, step in zip(size, steps, strict=True)), steps

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether its number of elements and its memory keep their bounds."""
        size, whole, _ = self._sizes(params)
        elements = math.prod(size)
        memory = math.prod(whole) * self._dtype.itemsize
        return not (
            (self._max_allocation_bytes is not None and memory > self._max_allocation_bytes)
            or (self._min_elements is not None and elements < self._min_elements)
            or (self._max_elements is not None and elements > self._max_elements)
        )

    def _make_tensor(self, params: dict[str, Any], state: Any) -> tuple[Any, dict[str, Any]]:
        size, whole, steps = self._sizes(params)
        make = self._tensor_constructor or self.default_tensor_constructor
        order = list(range(len(size)))
        if len(size) > 1 and state.rand() > self._probability_contiguous:
            order = [int(d) for d in state.permutation(len(size))]
        raw = make(size=tuple(whole[d] for d in order), dtype=self._dtype, **params)
        if self._cuda:
            raw = raw.cuda()
        raw = raw.permute(tuple(order.index(d) for d in range(len(size))))
        made = raw[tuple(slice(0, n * step, step) for n, step in zip(size, steps, strict=True))]
        facts = {
            "numel": int(made.numel()),
            "order": tuple(order),
            "steps": steps,
            "is_contiguous": made.is_contiguous(),
            "dtype": str(self._dtype),
        }
        return made, facts


class FuzzedSparseTensor(FuzzedTensor):
    """A sparse tensor of coordinates, a share of whose places is drawn.

    Args:
        nnz: How many places there are, or the share of them.
        coalesced: Whether its places stand in order.
        Others: As in `FuzzedTensor`.
    """

    def __init__(
        self, *args: Any, nnz: str | float | None = None, coalesced: str | bool | None = None, **kw: Any
    ) -> None:
        for name in ("sparse_dim", "density"):
            setattr(self, f"_{name}", kw.pop(name, None))
        super().__init__(*args, **kw)
        self._nnz, self._coalesced = nnz, coalesced

    def _make_tensor(self, params: dict[str, Any], state: Any) -> tuple[Any, dict[str, Any]]:
        size, _, _ = self._sizes(params)
        share = params.get(self._nnz, self._nnz) if self._nnz is not None else params.get(self._density, 0.1)
        count = int(share * math.prod(size)) if share < 1 else int(share)
        rows = [state.randint(0, max(n, 1), count) for n in size]
        places = tensor.stack([tensor.from_numpy(row) for row in rows])
        values = self.default_tensor_constructor((count,), self._dtype)
        made = tensor.sparse_coo_tensor(places, values, size)
        if params.get(self._coalesced, self._coalesced):
            made = made.coalesce()
        return made, {
            "numel": int(made.numel()),
            "nnz": count,
            "shape": tuple(size),
            "dtype": str(self._dtype),
        }


class Fuzzer:
    """Draws parameters and the tensors that are made of them.

    Args:
        parameters: `FuzzedParameter`s, also in lists.
        tensors: `FuzzedTensor`s, also in lists.
        constraints: Functions of the parameters by name that must hold.
        seed: Of the draws; drawn itself where it is None.

    Raises:
        ValueError: A name is given twice.

    Example:
        >>> from taeda.utils.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer
        >>> sizes = [FuzzedParameter("n", 2, 8, "loguniform")]
        >>> fuzzer = Fuzzer(sizes, [FuzzedTensor("x", ("n", "n"))], seed=0)
        >>> [tensors["x"].dim() for tensors, facts, params in fuzzer.take(3)]
        [2, 2, 2]
    """

    def __init__(
        self, parameters: list[Any], tensors: list[Any], constraints: list[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        import numpy as np

        self._seed = int(np.random.RandomState().randint(0, 2**31 - 1)) if seed is None else seed
        self._parameters, self._tensors = _flat(parameters), _flat(tensors)
        self._constraints = tuple(constraints or ())
        names = [item.name for item in (*self._parameters, *self._tensors)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"Duplicate names: {', '.join(twice)}")
        self._rejections = self._total = 0

    def take(self, n: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """Yields `n` times the tensors by name, what is known of them, and the parameters.

        Raises:
            ValueError: Nothing that is drawn meets the constraints.
        """
        import numpy as np

        state = np.random.RandomState(self._seed)
        for _ in range(n):
            params = self._draw(state)
            tensors, facts = {}, {}
            for item in self._tensors:
                tensors[item.name], facts[item.name] = item._make_tensor(params, state)
            yield tensors, facts, params

    @property
    def rejection_rate(self) -> float:
        """The share of draws that did not meet the constraints."""
        return self._rejections / self._total if self._total else 0.0

    def _draw(self, state: Any) -> dict[str, Any]:
        for _ in range(_TRIES):
            self._total += 1
            drawn: dict[str, Any] = {}
            for item in self._parameters:
                drawn[item.name] = item.sample(state)
            for name, value in list(drawn.items()):
                for _ in drawn:  # an alias of an alias, as often as there are parameters
                    if not isinstance(value, ParameterAlias):
                        break
                    value = drawn[value.alias_to]
                drawn[name] = value
            if all(f(**drawn) for f in self._constraints) and all(
                t.satisfies_constraints(drawn) for t in self._tensors
            ):
                return drawn
            self._rejections += 1
        raise ValueError(f"Fuzzer: none of {_TRIES} draws meets the constraints")


def _flat(items: Any) -> tuple[Any, ...]:
    made: list[Any] = []
    for item in items:
        made.extend(_flat(item) if isinstance(item, (tuple, list)) else [item])
    return tuple(made)
