"""Programs over libraries of processes, operators and equations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, numbers


def gpytorch(torch: Any, folder: Path) -> Found:
    """Exact regression as in its README, with derivatives, and a variational one."""
    import gpytorch as g

    class Exact(g.models.ExactGP):
        def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = g.means.ConstantMean()
            self.covar_module = g.kernels.ScaleKernel(g.kernels.RBFKernel() + g.kernels.MaternKernel(1.5))

        def forward(self, x: Any) -> Any:
            return g.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    x = torch.linspace(0, 1, 20).double()
    y = torch.sin(6 * x) + 0.1 * numbers(torch, 20)
    likelihood = g.likelihoods.GaussianLikelihood()
    model = Exact(x, y, likelihood).double()
    likelihood.double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = g.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    model.eval()
    likelihood.eval()
    at = torch.linspace(0, 1.2, 7).double()
    with torch.no_grad(), g.settings.fast_pred_var():
        there = likelihood(model(at))
        lower, upper = there.confidence_region()
    torch.save(model.state_dict(), folder / "model.pt")
    model.load_state_dict(torch.load(folder / "model.pt"))
    kernels = {
        name: getattr(g.kernels, name)().double()(x[:5, None]).to_dense()
        for name in (
            "PeriodicKernel",
            "LinearKernel",
            "RQKernel",
            "CosineKernel",
            "PiecewisePolynomialKernel",
        )
    }

    class Approximate(g.models.ApproximateGP):
        def __init__(self, points: Any) -> None:
            q = g.variational.CholeskyVariationalDistribution(points.size(0))
            super().__init__(
                g.variational.VariationalStrategy(self, points, q, learn_inducing_locations=True)
            )
            self.mean_module, self.covar_module = (
                g.means.ZeroMean(),
                g.kernels.ScaleKernel(g.kernels.RBFKernel()),
            )

        def forward(self, x: Any) -> Any:
            return g.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    approximate, noise = Approximate(x[::4, None]).double(), g.likelihoods.GaussianLikelihood().double()
    approximate.variational_strategy.variational_params_initialized.fill_(1)
    bound = g.mlls.VariationalELBO(noise, approximate, num_data=20)
    optimizer = torch.optim.Adam([*approximate.parameters(), *noise.parameters()], lr=0.05)
    bounds = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -bound(approximate(x[:, None]), y)
        loss.backward()
        optimizer.step()
        bounds.append(loss.detach())
    return {
        "losses": losses, "mean": there.mean, "lower": lower, "upper": upper, "bounds": bounds, **kernels,
        "keys": list(model.state_dict()),
    }  # fmt: skip


def linear_operator(torch: Any, folder: Path) -> Found:
    """Products, solutions, determinants and their gradients, of operators that are never made whole."""
    from linear_operator import operators as o
    from linear_operator import solve, to_dense

    a = numbers(torch, 6, 6)
    dense = (a @ a.T + 6 * torch.eye(6).double()).requires_grad_()
    operator = o.DenseLinearOperator(dense).add_jitter(1e-3)
    low = o.RootLinearOperator(numbers(torch, 6, 2)) + o.DiagLinearOperator(torch.ones(6).double())
    kron = o.KroneckerProductLinearOperator(
        o.DenseLinearOperator(dense[:2, :2]), o.DenseLinearOperator(dense[:3, :3])
    )
    right = numbers(torch, 6, 2, seed=1)
    quad, logdet = operator.inv_quad_logdet(right, logdet=True)
    (quad + logdet).backward()
    toeplitz = o.ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5, 0.2]).double())
    return {
        "solution": solve(low, right),
        "kron": to_dense(kron),
        "product": kron @ right,
        "quad": quad,
        "logdet": logdet,
        "gradient": dense.grad,
        "toeplitz": toeplitz @ right[:4],
        "root": to_dense(operator.cholesky()),
        "diagonal": low.diagonal(),
    }


def torchdiffeq(torch: Any, folder: Path) -> Found:
    """A field learned through its solution, by every solver, and by the adjoint equation."""
    from torchdiffeq import odeint, odeint_adjoint, odeint_event

    class Field(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

        def forward(self, t: Any, y: Any) -> Any:
            return self.net(y)

    field = filled(torch, Field().double())
    times = torch.linspace(0, 1, 5).double()
    start = numbers(torch, 3, 2).requires_grad_()
    found: Found = {}
    for method in [
        "dopri5",
        "dopri8",
        "bosh3",
        "fehlberg2",
        "adaptive_heun",
        "euler",
        "midpoint",
        "rk4",
        "explicit_adams",
        "implicit_adams",
    ]:
        found[method] = odeint(field, start, times, method=method)
    odeint_adjoint(field, start, times).pow(2).mean().backward()
    when, state = odeint_event(
        field, start[0], times[0], event_fn=lambda t, y: t - 0.5, method="dopri5", atol=1e-9, rtol=1e-9
    )
    return {
        **found,
        "gradients": [p.grad for p in field.parameters()],
        "start": start.grad,
        "when": when,
        "state": state,
    }
