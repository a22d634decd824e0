"""Derivatives of programs, numbers, indices, arrays."""

from __future__ import annotations

from typing import Any

import taeda as torch
from taeda.autograd import Function


class Exp(Function):
    @staticmethod
    def forward(ctx: Any, i: torch.Tensor) -> torch.Tensor:
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
        (result,) = ctx.saved_tensors
        return grad_output * result  # type: ignore[no-any-return]


def rosenbrock(p: torch.Tensor) -> torch.Tensor:
    return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2


x = torch.tensor([1.5, 0.5], requires_grad=True)
(g,) = torch.autograd.grad(rosenbrock(x), x, create_graph=True)
h = torch.autograd.functional.hessian(rosenbrock, x)
y = Exp.apply(x)
y.sum().backward()
assert x.grad is not None
t = torch.from_numpy(x.detach().numpy())
eigenvalues, vectors = torch.linalg.eigh(torch.eye(3))
u, s, v = torch.linalg.svd(torch.randn(3, 4), full_matrices=False)
idx = torch.arange(10)
mask = (idx % 2 == 0) & ~(idx > 6)
print(idx[mask], idx[None, ::2], idx[..., -1], torch.where(mask, idx, -idx))
values, places = torch.sort(idx, descending=True)
z: torch.Tensor = torch.einsum("i,j->ij", x, x)
parts: tuple[torch.Tensor, ...] = torch.split(idx, 3)
n: int = idx.numel()
f: float = idx.float().mean().item()
c = torch.complex(torch.ones(2), torch.zeros(2)).abs().max()
with torch.enable_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    w = x @ x
torch.set_num_threads(1)
print(
    g,
    h,
    s.shape[0],
    3.0 / x,
    2**idx,
    -x,
    abs(x),
    x < 3,
    1 - x,
    float(f),
    bool(mask.any()),
    len(x),
    [float(a) for a in x],
)
grads = torch.func.vmap(torch.func.grad(lambda a: (a * a).sum()))(torch.ones(3, 2))
print(grads, torch.func.jacrev(rosenbrock)(x))
