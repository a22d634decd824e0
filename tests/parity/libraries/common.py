"""What the programs share: numbers that both libraries get alike, a small network and its data."""

from __future__ import annotations

from typing import Any

import numpy as np
import zoo_worker

Found = dict[str, Any]


def numbers(torch: Any, *shape: int, seed: int = 0, dtype: Any = None) -> Any:
    """Normally distributed numbers, float64 unless another dtype is given."""
    made = torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))
    return made if dtype is None else made.to(dtype)


def filled(torch: Any, model: Any) -> Any:
    """The model, with numbers drawn from the names of its parameters."""
    zoo_worker.fill(torch, model)
    return model


def network(torch: Any, width: int, dtype: Any = None) -> Any:
    """Six numbers to three scores."""
    nn = torch.nn
    layers = nn.Sequential(nn.Linear(6, width), nn.LayerNorm(width), nn.Tanh(), nn.Linear(width, 3))
    return filled(torch, layers.to(dtype or torch.float64))


def table(torch: Any, rows: int = 40, dtype: Any = None) -> tuple[Any, Any]:
    """Rows of six numbers and their classes, which follow from them."""
    x = numbers(torch, rows, 6, dtype=dtype)
    return x, (x[:, :3] + 0.1 * x[:, 3:]).argmax(1)


def steps(torch: Any, model: Any, optimizer: Any, count: int) -> list[float]:
    """Train on the table; the losses."""
    x, y = table(torch)
    losses = []
    for _ in range(count):

        def closure() -> Any:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        loss = closure()
        optimizer.step()
        losses.append(loss.item())
    return losses


def learned(torch: Any, model: Any, *inputs: Any) -> Found:
    """A model of numbers drawn from names: its results, the gradients of input and parameters, names of its state."""
    model = filled(torch, model.double()).eval()
    first = inputs[0].requires_grad_() if inputs[0].is_floating_point() else inputs[0]
    result = model(*inputs)
    result = result[0] if isinstance(result, (tuple, list)) else result
    (result * result).mean().backward()
    return {
        "result": result, "gradient": first.grad, "keys": list(model.state_dict()),
        "gradients": [p.grad for p in model.parameters() if p.grad is not None],
    }  # fmt: skip


def named(name: str, found: Found) -> Found:
    """The results under a name of their own."""
    return {f"{name} {key}": value for key, value in found.items()}
