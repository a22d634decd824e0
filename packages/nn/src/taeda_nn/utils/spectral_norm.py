"""A weight divided by its greatest singular value, by hooks; `parametrizations.spectral_norm` is the present way."""

from __future__ import annotations

from typing import Any, TypeVar

from taeda_nn import functional as F
from taeda_nn._bind import Tensor, no_grad
from taeda_nn.modules._whole import Whole
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter, is_lazy

M = TypeVar("M", bound=Module)

# Modules whose output channels are the second dimension of their weight.
_TRANSPOSED = frozenset({"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"})


def output_dim(module: Module) -> int:
    """The dimension of a module's weight that counts its outputs."""
    return 1 if any(base.__name__ in _TRANSPOSED for base in type(module).__mro__) else 0


class SpectralNorm:
    """The forward pre-hook that divides a weight by its greatest singular value, found by power iteration."""

    _version: int = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"spectral_norm: n_power_iterations must be positive, found {n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """(outputs, rest)."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The normalised weight, after one more iteration if wanted."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
                # Copies, because the next call changes the buffers while this one's gradient may still be wanted.
                u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def remove(self, module: Module) -> None:
        """Makes the present weight the parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        with Whole(module):
            delattr(module, self.name)
            for part in ("u", "v", "orig"):
                delattr(module, f"{self.name}_{part}")
            module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v_and_rescale(self, weight_mat: Tensor, u: Tensor, target_sigma: Tensor) -> Tensor:
        """v such that u^T W v is ``target_sigma``: for states that were saved without v."""
        v = (weight_mat.t().mm(weight_mat).pinverse() @ (weight_mat.t() @ u.unsqueeze(1))).squeeze(1)
        return v.mul_(target_sigma / u.dot(weight_mat.mv(v)))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Replaces parameter ``name`` by ``name_orig`` and the two vectors, and adds the hooks."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"spectral_norm: parameter {name!r} is normalised already")
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"spectral_norm: parameter {name!r} is None")
        if is_lazy(weight):
            raise ValueError(
                f"spectral_norm: parameter {name!r} is not initialised yet; call the lazy module once before"
            )
        with no_grad():
            matrix = fn.reshape_weight_to_matrix(weight)
            u, v = (F.normalize(matrix.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in matrix.shape)
        with Whole(module):
            delattr(module, name)
            module.register_parameter(f"{name}_orig", weight)
            # A plain attribute, so that nobody takes it for a parameter before the first call.
            setattr(module, name, weight.data)
            module.register_buffer(f"{name}_u", u)
            module.register_buffer(f"{name}_v", v)
            module.register_forward_pre_hook(fn)
            module._register_state_dict_hook(SpectralNormStateDictHook(fn))
            module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(fn))
        return fn


class SpectralNormLoadStateDictPreHook:
    """Computes what states of old versions lack."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        fn, key = self.fn, prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(f"{fn.name}.version")
        if version is not None and version >= 1:
            return
        complete = all(key + end in state_dict for end in ("_orig", "_u", "_v"))
        if version is None and complete and key not in state_dict:
            return
        has_error = False
        for suffix in ("_orig", "", "_u"):
            if key + suffix not in state_dict:
                has_error = True
                if strict:
                    missing_keys.append(key + suffix)
        if has_error:
            return
        with no_grad():
            original, weight = state_dict[key + "_orig"], state_dict.pop(key)
            sigma = (original / weight).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            state_dict[key + "_v"] = fn._solve_v_and_rescale(matrix, state_dict[key + "_u"], sigma)


class SpectralNormStateDictHook:
    """Notes the version in the metadata of a state."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        noted = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in noted:
            raise RuntimeError(f"spectral_norm: {key!r} stands in the metadata already")
        noted[key] = self.fn._version


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight with dimension ``dim`` first and all others in one."""
    if dim:
        weight = weight.movedim(dim, 0)
    return weight.reshape(weight.shape[0], -1)


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divides a weight by its greatest singular value, estimated by one iteration at each call while training.

    Args:
        module: The module.
        name: Its parameter.
        n_power_iterations: Iterations of a call.
        eps: Lowest norm that is divided by.
        dim: The dimension of outputs; by default the second of transposed convolutions, else the first.

    Returns: the module.

    Example:
        >>> m = nn.utils.spectral_norm(nn.Linear(20, 40))

    Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018.
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undoes `spectral_norm`; ValueError where there is none."""
    normalising = [
        (number, hook)
        for number, hook in module._forward_pre_hooks.items()
        if isinstance(hook, SpectralNorm) and hook.name == name
    ]
    if not normalising:
        raise ValueError(f"remove_spectral_norm: {name!r} of {type(module).__name__} is not normalised")
    number, hook = normalising[0]
    with Whole(module):
        hook.remove(module)
        del module._forward_pre_hooks[number]
        for hooks, kind in (
            (module._state_dict_hooks, SpectralNormStateDictHook),
            (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
        ):
            for place, entry in tuple(hooks.items()):
                found = getattr(entry, "hook", entry)
                if isinstance(found, kind) and found.fn.name == name:
                    del hooks[place]
    return module
