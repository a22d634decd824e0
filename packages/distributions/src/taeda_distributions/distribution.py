"""What all distributions have in common."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.utils import LazyOfClass, all_true, batch_of, lazy_property
from taeda_registry.slots import tensor

__all__ = ["Distribution"]


class Distribution:
    """Base of all distributions.

    Args:
        batch_shape: Shape of independent distributions, which differ in their parameters.
        event_shape: Shape of one value.
        validate_args: Check parameters now and values later; by default as `set_default_validate_args` said, else
            unless Python runs with ``-O``.

    Raises:
        ValueError: A parameter is not where it has to be; the text names it and the constraint.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[dict[str, Any]] = {}
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Choose whether parameters and values are checked where nothing is said."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected True or False, found {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = batch_of(batch_shape), batch_of(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()  # of what else a distribution is derived from

    def _check_parameters(self) -> None:
        try:
            expected = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in expected.items():
            # What is derived from another parameter is not computed for this.
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name, None), LazyOfClass):
                continue
            value = getattr(self, name)
            if not all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with its batch expanded, as tensors are."""
        raise NotImplementedError(f"{type(self).__name__}.expand")

    @property
    def batch_shape(self) -> Any:
        """Shape of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """Shape of one value."""
        return self._event_shape

    @property
    def support(self) -> Any:
        """Where values lie."""
        raise NotImplementedError(f"{type(self).__name__}.support")

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__}.mean")

    @property
    def mode(self) -> Any:
        """A most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__}.variance")

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Independent samples, of shape ``sample_shape + batch_shape + event_shape``, without gradients."""
        with tensor.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Samples that gradients flow through to the parameters."""
        raise NotImplementedError(f"{type(self).__name__}.rsample")

    def sample_n(self, n: int) -> Any:
        """`sample((n,))`; deprecated."""
        warnings.warn("sample_n(n) will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError(f"{type(self).__name__}.log_prob")

    def cdf(self, value: Any) -> Any:
        """Probability of values up to `value`."""
        raise NotImplementedError(f"{type(self).__name__}.cdf")

    def icdf(self, value: Any) -> Any:
        """The value up to which values lie with a probability."""
        raise NotImplementedError(f"{type(self).__name__}.icdf")

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError(f"{type(self).__name__}.enumerate_support")

    def entropy(self) -> Any:
        """The entropy, in nats."""
        raise NotImplementedError(f"{type(self).__name__}.entropy")

    def perplexity(self) -> Any:
        """exp of the entropy."""
        return tensor.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        return batch_of((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, tensor.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event_start = value.dim() - len(self._event_shape)
        if tuple(value.shape[event_start:]) != tuple(self._event_shape):
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{tuple(value.shape)} vs {tuple(self._event_shape)}."
            )
        expected = (*self._batch_shape, *self._event_shape)
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                "support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define "
                "a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        # One that is a module too has its parameters among the module's members, which the text leaves out.
        members = {*getattr(self, "_parameters", ()), *getattr(self, "_buffers", ())}
        names = [name for name in self.arg_constraints if name in self.__dict__ and name not in members]
        shown = ", ".join(
            f"{name}: {getattr(self, name) if getattr(self, name).numel() == 1 else getattr(self, name).shape}"
            for name in names
        )
        return f"{type(self).__name__}({shown})"


class Parameterized(Distribution):
    """A distribution whose parameters are tensors of the batch's shape and more: `expand` expands each.

    Subclasses name in `_parameter_dims` each parameter with the number of its event's dimensions.
    """

    _parameter_dims: ClassVar[dict[str, int]] = {}

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(type(self)._root(), _instance)
        batch_shape = batch_of(batch_shape)
        for name, dims in self._parameter_dims.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                event = tuple(value.shape[value.dim() - dims :]) if dims else ()
                new.__dict__[name] = value.expand((*batch_shape, *event))
        self._carry(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _carry(self, new: Any, batch_shape: Any) -> None:
        """What else the expanded one needs."""

    @classmethod
    def _root(cls) -> type:
        """The class whose constructor this one has."""
        return next(base for base in cls.__mro__ if "__init__" in vars(base))


def two_ways(first: str, second: str, *, is_binary: bool) -> Any:
    """Decorator: the class has `probs` and `logits`, of which one is given and the other computed when asked for."""
    from taeda_distributions import utils

    def of_probs(self: Any) -> Any:
        return utils.probs_to_logits(self.probs, is_binary=is_binary)

    def of_logits(self: Any) -> Any:
        return utils.logits_to_probs(self.logits, is_binary=is_binary)

    of_probs.__name__, of_logits.__name__ = second, first
    of_probs.__doc__ = "Logarithms of odds." if is_binary else "Logarithms of the probabilities."
    of_logits.__doc__ = "The probabilities."

    def decorate(cls: type) -> type:
        setattr(cls, first, lazy_property(of_logits))
        setattr(cls, second, lazy_property(of_probs))
        return cls

    return decorate


def either(probs: Any, logits: Any) -> None:
    """ValueError unless exactly one is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
