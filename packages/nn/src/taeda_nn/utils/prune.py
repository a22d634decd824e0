"""Pruning: parameters of which a mask leaves part out, kept up to date by a hook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from taeda_nn._bind import Tensor, needed, op, tensor
from taeda_nn.modules._whole import Whole
from taeda_nn.modules.module import Module

_vector_norm = op("vector_norm")


class BasePruningMethod(ABC):
    """Base of pruning methods; a subclass sets ``PRUNING_TYPE`` and defines ``compute_mask``.

    ``PRUNING_TYPE`` says what is pruned: 'unstructured' (single elements), 'structured' (whole slices) or 'global'.
    The parameter ``name`` becomes ``name_orig``, with a buffer ``name_mask`` beside it; the attribute ``name`` is
    their product, computed before each call of the module.
    """

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for importances ``t``, within ``default_mask``."""

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned tensor."""
        if getattr(self, "_tensor_name", None) is None:
            raise AssertionError(f"{type(self).__name__}: the module has not been pruned by it")
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes parameter ``name``, further if it is pruned already, and adds the hook.

        Args:
            module: The module.
            name: Its parameter.
            *args, **kwargs: For the method's constructor.
            importance_scores: What to prune by, instead of the values.
        """
        before = _method_of(module, name)
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if before is None:
            original, chosen = getattr(module, name), method
            default_mask = tensor.ones_like(original)
        else:
            number, old = before
            original = getattr(module, f"{name}_orig")
            default_mask = getattr(module, f"{name}_mask").detach().clone()
            chosen = old if isinstance(old, PruningContainer) else PruningContainer(old)
        if importance_scores is None:
            importance_scores = getattr(module, name)
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"{cls.__name__}: importance_scores must have shape {tuple(original.shape)}, "
                f"found {tuple(importance_scores.shape)}"
            )
        earlier = getattr(chosen, "_pruning_methods", None)
        try:
            with Whole(module):
                if chosen is not method:
                    chosen.add_pruning_method(method)
                mask = chosen.compute_mask(importance_scores.detach(), default_mask)
                if before is None:
                    del module._parameters[name]
                    module.register_parameter(f"{name}_orig", original)
                else:
                    del module._forward_pre_hooks[number]
                module.register_buffer(f"{name}_mask", mask)
                setattr(module, name, chosen.apply_mask(module))
                module.register_forward_pre_hook(chosen)
        except BaseException:
            if chosen is not method:
                chosen._pruning_methods = earlier
            raise
        return chosen

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """``t`` pruned, without a module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"{type(self).__name__}: importance_scores must have shape {tuple(t.shape)}, "
                f"found {tuple(importance_scores.shape)}"
            )
        default_mask = tensor.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask)

    def remove(self, module: Module) -> None:
        """Makes the pruned tensor a parameter again; what was pruned stays 0."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        original = module._parameters[f"{name}_orig"]
        with Whole(module, data=(original,)):
            if name in module.__dict__:
                delattr(module, name)
            original.data = weight.detach()
            del module._parameters[f"{name}_orig"]
            del module._buffers[f"{name}_mask"]
            setattr(module, name, original)


def _method_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """The hook that prunes a parameter, with its number."""
    found = [
        (number, hook)
        for number, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    ]
    if len(found) > 1:
        raise AssertionError(f"prune: {len(found)} methods prune {name!r}; they should be in one container")
    return found[0] if found else None


class PruningContainer(BasePruningMethod):
    """Pruning methods one after another on one parameter."""

    PRUNING_TYPE = "container"

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1 and not isinstance(args[0], Iterable):
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
            return
        methods = args[0] if len(args) == 1 else args
        for i, method in enumerate(methods):
            if i == 0:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Adds a method on the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"PruningContainer: expected a pruning method, found {type(method).__name__}")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"PruningContainer: all methods must prune {self._tensor_name!r}, found one of {method._tensor_name!r}"
            )
        self._pruning_methods += (method,)  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What the last method leaves of what the ones before have left."""
        method, mask = self._pruning_methods[-1], default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            part: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim: int = method.dim  # type: ignore[attr-defined]
            others = [d for d in range(t.dim()) if d != dim % t.dim()]
            left = mask.sum(dim=others) != 0
            part = tuple(left if d == dim % t.dim() else slice(None) for d in range(t.dim()))
        elif method.PRUNING_TYPE == "global":
            part = slice(None)
        else:
            raise ValueError(f"PruningContainer: unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        combined = mask.clone()
        combined[part] = method.compute_mask(t[part], mask[part]).to(dtype=mask.dtype)
        return combined


class Identity(BasePruningMethod):
    """Prunes nothing, but gives the parameter its mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name)


class _Amount(BasePruningMethod):
    """A method that prunes a number or a share of what there is."""

    amount: float

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, total: int) -> int:
        count = _compute_nparams_toprune(self.amount, total)
        _validate_pruning_amount(count, total)
        return count


class RandomUnstructured(_Amount):
    """Prunes elements at random.

    Args:
        amount: How many, or which share of them.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        mask = default_mask.clone()
        count = self._count(t.numel())
        if count:
            chosen = tensor.rand_like(t).reshape(-1).topk(count).indices
            mask.view(-1)[chosen] = 0
        return mask

    @classmethod
    def apply(cls, module: Module, name: str, amount: float) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Amount):
    """Prunes the elements of least absolute value.

    Args:
        amount: How many, or which share of them.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        mask = default_mask.clone()
        count = self._count(t.numel())
        if count:
            chosen = t.abs().reshape(-1).topk(count, largest=False).indices
            mask.view(-1)[chosen] = 0
        return mask

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _keeping(t: Tensor, dim: int, kept: Tensor) -> Tensor:
    """A mask that keeps the slices ``kept`` along ``dim``."""
    mask = tensor.zeros_like(t)
    return mask.index_fill_(dim, kept, 1)


class RandomStructured(_Amount):
    """Prunes slices along a dimension at random.

    Args:
        amount: How many, or which share of them.
        dim: The dimension.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        kept = tensor.rand(size, device=t.device).topk(size - count).indices
        return _keeping(t, self.dim, kept).mul_(default_mask.to(dtype=t.dtype))

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, dim: int = -1
    ) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Amount):
    """Prunes the slices along a dimension of least norm.

    Args:
        amount: How many, or which share of them.
        n: The order of the norm, as of ``linalg.vector_norm`` or 'fro'.
        dim: The dimension.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        kept = _compute_norm(t, self.n, self.dim).topk(size - count).indices
        return _keeping(t, self.dim, kept).mul_(default_mask.to(dtype=t.dtype))

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: float,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"CustomFromMask: mask must have shape {tuple(default_mask.shape)}, found {tuple(self.mask.shape)}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


def identity(module: Module, name: str) -> Module:
    """Gives a parameter a mask that prunes nothing; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prunes elements of a parameter at random; ``amount`` is their number or share. Returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prunes the elements of least absolute value, or score; ``amount`` is their number or share.

    Returns: the module.

    Example:
        >>> m = prune.l1_unstructured(nn.Linear(2, 3), "weight", amount=0.2)
        >>> sorted(m.state_dict())
        ['bias', 'weight_mask', 'weight_orig']
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prunes slices along ``dim`` at random; ``amount`` is their number or share. Returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prunes the slices along ``dim`` of least norm of order ``n``; ``amount`` is their number or share.

    Returns: the module.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes by a given mask; returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: type, importance_scores: dict[Any, Tensor] | None = None, **kwargs: Any
) -> None:
    """Prunes elements of several parameters by one comparison of all.

    Args:
        parameters: Pairs (module, name).
        pruning_method: A class of type 'unstructured'.
        importance_scores: What to prune by, by pair.
        **kwargs: For the method, such as ``amount``.

    Raises:
        TypeError: Parameters or scores of another kind, or a method that prunes slices.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    relevant = [scores.get((module, name), getattr(module, name)) for module, name in parameters]
    values = tensor.cat([t.detach().reshape(-1) for t in relevant])
    masks = [getattr(module, f"{name}_mask", None) for module, name in parameters]
    default_mask = tensor.cat(
        [
            (tensor.ones_like(t) if mask is None else mask).reshape(-1)
            for t, mask in zip(relevant, masks, strict=True)
        ]
    )
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    final = container.compute_mask(values, default_mask)
    at = 0
    for module, name in parameters:
        param = getattr(module, name)
        custom_from_mask(module, name, mask=final[at : at + param.numel()].view_as(param))
        at += param.numel()


def remove(module: Module, name: str) -> Module:
    """Makes a pruned parameter an ordinary one, with 0 where it was pruned; returns the module.

    Raises:
        ValueError: It is not pruned.
    """
    found = _method_of(module, name)
    if found is None:
        raise ValueError(
            f"Parameter '{name}' of module {type(module).__name__} has to be pruned before pruning can be removed"
        )
    number, method = found
    with Whole(module, data=(module._parameters[f"{name}_orig"],)):
        method.remove(module)
        del module._forward_pre_hooks[number]
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for below in module.modules()
        for hook in below._forward_pre_hooks.values()
    )


def _validate_pruning_amount_init(amount: float) -> None:
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    negative = isinstance(amount, int) and amount < 0
    if negative or (not isinstance(amount, int) and not 0.0 <= amount <= 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )


def _validate_pruning_amount(amount: float, tensor_size: int) -> None:
    if isinstance(amount, int) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}"
        )


def _validate_structured_pruning(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. "
            f"Found tensor of shape {tuple(t.shape)} with {t.dim()} dims"
        )


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    return amount if isinstance(amount, int) else round(amount * tensor_size)


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {tuple(t.shape)}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """The norm of every slice along ``dim``."""
    others = [d for d in range(t.dim()) if d != dim % t.dim()]
    if n == "nuc":
        return needed("linalg_matrix_norm")(t, "nuc", dim=others)
    return _vector_norm(t, 2.0 if n == "fro" else n, others)
