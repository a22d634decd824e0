"""Arithmetic as modules, so that what it gives can be observed and quantized."""

from __future__ import annotations

from typing import Any

import taeda
from taeda_registry.slots import nn


class FloatFunctional(nn.Module):
    """Arithmetic of numbers, whose results pass `activation_post_process`: an observer, after `prepare`.

    Example:
        >>> taeda.ao.nn.quantized.FloatFunctional().add(taeda.ones(2), 2 * taeda.ones(2))
        tensor([3., 3.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x: Any) -> Any:
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def add(self, x: Any, y: Any) -> Any:
        """The sum."""
        return self.activation_post_process(taeda.add(x, y))

    def add_scalar(self, x: Any, y: float) -> Any:
        """The sum with a number, which is not observed."""
        return taeda.add(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """The product."""
        return self.activation_post_process(taeda.mul(x, y))

    def mul_scalar(self, x: Any, y: float) -> Any:
        """The product with a number, which is not observed."""
        return taeda.mul(x, y)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """The tensors one after another."""
        return self.activation_post_process(taeda.cat(x, dim=dim))

    def add_relu(self, x: Any, y: Any) -> Any:
        """The sum, and 0 where it is below."""
        return self.activation_post_process(nn.functional.relu(taeda.add(x, y)))

    def matmul(self, x: Any, y: Any) -> Any:
        """The product of matrices."""
        return self.activation_post_process(taeda.matmul(x, y))


class FXFloatFunctional(FloatFunctional):
    """The arithmetic alone, for models whose graphs are observed."""

    def __init__(self) -> None:
        super().__init__()
        del self.activation_post_process

    @staticmethod
    def activation_post_process(x: Any) -> Any:
        """What it is given: graphs have observers of their own."""
        return x


class QFunctional(nn.Module):
    """Arithmetic of quantized tensors, stored by `scale` and `zero_point`."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0
        self.zero_point = 0
        self.activation_post_process = nn.Identity()

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = taeda.tensor(self.scale)
        destination[prefix + "zero_point"] = taeda.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Any) -> Any:
        raise RuntimeError(
            "Functional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def _made(self, name: str, *args: Any) -> Any:
        made = getattr(taeda.ops.quantized, name)(*args, self.scale, self.zero_point)
        return self.activation_post_process(made)

    def add(self, x: Any, y: Any) -> Any:
        """The sum."""
        return self._made("add", x, y)

    def add_scalar(self, x: Any, y: float) -> Any:
        """The sum with a number."""
        return taeda.ops.quantized.add_scalar(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """The product."""
        return self._made("mul", x, y)

    def mul_scalar(self, x: Any, y: float) -> Any:
        """The product with a number."""
        return taeda.ops.quantized.mul_scalar(x, y)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """The tensors one after another."""
        return self.activation_post_process(taeda.ops.quantized.cat(x, dim, self.scale, self.zero_point))

    def add_relu(self, x: Any, y: Any) -> Any:
        """The sum, and 0 where it is below."""
        return self._made("add_relu", x, y)

    def matmul(self, x: Any, y: Any) -> Any:
        """The product of matrices."""
        return self._made("matmul", x, y)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """The module in place of an observed `FloatFunctional`."""
        made = cls()
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
