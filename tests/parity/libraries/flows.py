"""Programs over libraries of inference, flows and equations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, numbers


def pyro(torch: Any, folder: Path) -> Found:
    """Regression by variational inference and by Hamiltonian steps, traces, and enumeration."""
    import pyro
    import pyro.distributions as d
    from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
    from pyro.infer.autoguide import AutoDelta, AutoDiagonalNormal, AutoNormal

    x = numbers(torch, 60)
    y = 2.0 * x + 1.0 + 0.1 * numbers(torch, 60, seed=1)

    def model(x: Any, y: Any = None) -> Any:
        slope = pyro.sample("slope", d.Normal(torch.tensor(0.0).double(), 10.0))
        shift = pyro.sample("shift", d.Normal(torch.tensor(0.0).double(), 10.0))
        with pyro.plate("data", len(x)):
            return pyro.sample("y", d.Normal(slope * x + shift, 0.1), obs=y)

    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    guide = AutoDelta(model)
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), Trace_ELBO())
    losses = [svi.step(x, y) for _ in range(150)]
    found = guide.median(x, y)
    pyro.clear_param_store()
    mean_field = AutoNormal(model)
    svi = SVI(model, mean_field, pyro.optim.ClippedAdam({"lr": 0.05}), Trace_ELBO(num_particles=2))
    for _ in range(300):
        svi.step(x, y)
    near = mean_field.median(x, y)
    drawn = Predictive(model, guide=mean_field, num_samples=20)(x)["y"]
    chain = MCMC(NUTS(model, jit_compile=False), num_samples=60, warmup_steps=60, disable_progbar=True)
    chain.run(x, y)
    samples = chain.get_samples()

    @config_enumerate
    def mixture(data: Any) -> None:
        with pyro.plate("data", len(data)):
            which = pyro.sample("which", d.Categorical(torch.tensor([0.3, 0.7]).double()))
            pyro.sample("x", d.Normal(torch.tensor([-2.0, 2.0]).double()[which], 1.0), obs=data)

    bound = TraceEnum_ELBO(max_plate_nesting=1).loss(mixture, lambda data: None, x)
    trace = pyro.poutine.trace(
        pyro.condition(model, data={"slope": torch.tensor(2.0).double(), "shift": torch.tensor(1.0).double()})
    ).get_trace(x, y)
    flow = d.transforms.spline(1)
    return {
        "slope": bool((found["slope"] - 2).abs() < 0.05),
        "shift": bool((found["shift"] - 1).abs() < 0.05),
        "fell": losses[-1] < losses[0],
        "near": bool((near["slope"] - 2).abs() < 0.2),
        "drawn": list(drawn.shape),
        "chain": bool((samples["slope"].mean() - 2).abs() < 0.1),
        "bound": bound,
        "trace": trace.log_prob_sum(),
        "flow": list(flow(torch.ones(3, 1)).shape),
        "guide": type(AutoDiagonalNormal(model)).__name__,
    }


def botorch(torch: Any, folder: Path) -> Found:
    """A model fitted, the best next point by expected improvement, test functions, transforms."""
    from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.optim import optimize_acqf
    from botorch.test_functions import Ackley, Branin, Hartmann
    from botorch.utils.multi_objective import is_non_dominated
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x = numbers(torch, 12, 2).sigmoid()
    y = -((x - 0.4) ** 2).sum(-1, keepdim=True)
    model = SingleTaskGP(x, y, input_transform=Normalize(d=2), outcome_transform=Standardize(m=1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    bounds = torch.stack([torch.zeros(2), torch.ones(2)]).double()
    start = torch.tensor([[[0.5, 0.5]]]).double()
    best, value = optimize_acqf(
        LogExpectedImprovement(model, y.max()), bounds, q=1, num_restarts=1, batch_initial_conditions=start
    )
    return {
        "close": bool(((best - 0.4).abs() < 0.1).all()),
        "mean": model.posterior(x[:3]).mean.round(decimals=2),
        "bound": bool(UpperConfidenceBound(model, 0.1)(best[None]).isfinite().all()),
        "branin": Branin()(x),
        "ackley": Ackley(2)(x),
        "hartmann": Hartmann()(numbers(torch, 4, 6).sigmoid()),
        "front": is_non_dominated(numbers(torch, 10, 2)),
        "finite": bool(value.isfinite()),
    }


def torchsde(torch: Any, folder: Path) -> Found:
    """Paths without noise are those of the equation; with noise they are finite and repeat."""
    import torchsde

    class Equation(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self, size: float) -> None:
            super().__init__()
            self.rate = torch.nn.Parameter(torch.tensor(0.5).double())
            self.size = size

        def f(self, t: Any, y: Any) -> Any:
            return -self.rate * y

        def g(self, t: Any, y: Any) -> Any:
            return self.size * torch.ones_like(y)

    times, start = torch.linspace(0, 1, 4).double(), numbers(torch, 3, 2)
    quiet = Equation(0.0)
    path = torchsde.sdeint(quiet, start, times, method="euler", dt=0.05)
    path.sum().backward()
    loud = Equation(0.3)
    noise = torchsde.BrownianInterval(
        0.0, 1.0, size=(3, 2), dtype=torch.float64, entropy=3, levy_area_approximation="space-time"
    )
    first, second = (torchsde.sdeint(loud, start, times, bm=noise, method="srk", dt=0.05) for _ in range(2))
    adjoint = torchsde.sdeint_adjoint(loud, start, times, method="euler", dt=0.05)
    adjoint.sum().backward()
    return {
        "path": path,
        "gradient": quiet.rate.grad,
        "same": torch.equal(first, second),
        "finite": bool(adjoint.isfinite().all()),
    }


def torchcde(torch: Any, folder: Path) -> Found:
    """Splines through data and an equation driven by them."""
    import torchcde

    times = torch.linspace(0, 1, 6).double()
    x = torch.cat([times[None, :, None].expand(2, 6, 1), numbers(torch, 2, 6, 2)], 2)
    natural = torchcde.CubicSpline(torchcde.natural_cubic_coeffs(x))
    hermite = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(x))
    linear = torchcde.LinearInterpolation(torchcde.linear_interpolation_coeffs(x))
    net = filled(torch, torch.nn.Linear(4, 12).double())

    class Field(torch.nn.Module):
        def forward(self, t: Any, z: Any) -> Any:
            return net(z).view(2, 4, 3).tanh()

    z = torchcde.cdeint(X=hermite, z0=numbers(torch, 2, 4), func=Field(), t=hermite.interval, adjoint=False)
    z.pow(2).sum().backward()
    at = torch.tensor([0.3, 2.5]).double()
    return {
        "natural": natural.evaluate(at),
        "slope": natural.derivative(at),
        "linear": linear.evaluate(at),
        "z": z,
        "gradient": net.weight.grad,
        "signature": torchcde.logsig_windows(x, 2, 2.0) if False else x,
    }


def zuko(torch: Any, folder: Path) -> Found:
    """Flows that depend on a context."""
    import zuko

    x, context = numbers(torch, 8, 3), numbers(torch, 8, 2, seed=1)
    found: Found = {}
    for name, options in {
        "MAF": {},
        "NSF": {"bins": 4},
        "NICE": {},
        "RealNVP": {},
        "SOSPF": {},
        "NAF": {},
        "UNAF": {},
        "BPF": {},
        "CNF": {},
        "GF": {},
    }.items():
        flow = filled(
            torch, getattr(zuko.flows, name)(3, 2, hidden_features=(8, 8), **options).double()
        ).eval()
        loss = -flow(context).log_prob(x).mean()
        if name != "CNF":
            found[name] = loss
            loss.backward()
            found[f"{name} gradients"] = [p.grad for p in flow.parameters() if p.grad is not None]
        found[f"{name} drawn"] = (
            list(flow(context).sample((2,)).shape) if name in ("MAF", "NSF", "NICE") else []
        )
    return found


def sbi(torch: Any, folder: Path) -> Found:
    """Inference of a simulator's parameters by an estimated posterior."""
    from sbi.inference import NPE
    from sbi.utils import BoxUniform

    torch.manual_seed(0)
    prior = BoxUniform(-2 * torch.ones(2), 2 * torch.ones(2))
    theta = prior.sample((300,))
    x = theta + 0.1 * torch.randn_like(theta)
    inference = NPE(prior, show_progress_bars=False, density_estimator="maf")
    inference.append_simulations(theta, x).train(max_num_epochs=60, training_batch_size=50)
    drawn = inference.build_posterior().sample((200,), x=torch.tensor([0.5, -0.5]), show_progress_bars=False)
    return {
        "near": bool((drawn.mean(0) - torch.tensor([0.5, -0.5])).abs().max() < 0.4),
        "shape": list(drawn.shape),
    }
