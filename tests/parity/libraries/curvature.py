"""Programs over libraries that take derivatives of other kinds."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from libraries.common import Found, filled, network, numbers, table


def opacus(torch: Any, folder: Path) -> Found:
    """Gradients of each sample, and training with noise of no size."""
    from opacus import GradSampleModule, PrivacyEngine
    from opacus.validators import ModuleValidator

    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3),
        torch.nn.GroupNorm(2, 4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 3),
    ).double()
    filled(torch, net)
    x, y = numbers(torch, 16, 1, 6, 6), torch.arange(16) % 3
    wrapped = GradSampleModule(copy.deepcopy(net))
    torch.nn.functional.cross_entropy(wrapped(x), y).backward()
    samples = [p.grad_sample for p in wrapped.parameters()]
    engine = PrivacyEngine(accountant="rdp")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
    net, optimizer, loader = engine.make_private(
        module=net,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=0.0,
        max_grad_norm=0.5,
        poisson_sampling=False,
    )
    for inputs, targets in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(inputs), targets).backward()
        optimizer.step()
    fixed = ModuleValidator.fix(torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.BatchNorm2d(32)))
    return {"samples": samples, "parameters": list(net.parameters()), "fixed": repr(fixed)}


def laplace(torch: Any, folder: Path) -> Found:
    """Uncertainty of a trained network's last layer."""
    from laplace import Laplace

    from libraries.common import network, table

    x, y = table(torch, dtype=torch.float32)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=10)
    approximation = Laplace(
        network(torch, 8, torch.float32),
        "classification",
        subset_of_weights="last_layer",
        hessian_structure="full",
    )
    approximation.fit(loader)
    approximation.optimize_prior_precision(method="marglik")
    return {"probabilities": approximation(x[:5], link_approx="probit")}


def backpack(torch: Any, folder: Path) -> Found:
    """Gradients of examples, their variance, diagonals of the Hessian and of Gauss-Newton matrices, products."""
    import backpack as b
    from backpack import extensions as e
    from backpack.hessianfree.ggnvp import ggn_vector_product
    from backpack.hessianfree.hvp import hessian_vector_product

    nn = torch.nn
    found: Found = {}
    nets = {
        "dense": (nn.Sequential(nn.Linear(6, 5), nn.Sigmoid(), nn.Linear(5, 3)), table(torch)),
        "image": (
            nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)),
            (numbers(torch, 4, 1, 6, 6), torch.arange(4) % 3),
        ),
    }
    for name, (net, (x, y)) in nets.items():
        model = b.extend(filled(torch, net.double()))
        loss_function = b.extend(nn.CrossEntropyLoss())
        for extension in (
            e.BatchGrad(),
            e.BatchL2Grad(),
            e.SumGradSquared(),
            e.Variance(),
            e.DiagGGNExact(),
            e.KFLR(),
            e.KFRA(),
            e.DiagHessian(),
            e.BatchDiagGGNExact(),
            e.SqrtGGNExact(),
        ):
            kind = type(extension).__name__
            if name == "image" and kind in ("KFRA", "DiagHessian"):
                continue
            model.zero_grad()
            with b.backpack(extension):
                loss_function(model(x), y).backward()
            values = [getattr(p, extension.savefield) for p in model.parameters()]
            found[f"{name} {kind}"] = [v.pow(2).sum(0) for v in values] if kind == "SqrtGGNExact" else values
        parameters = list(model.parameters())
        output = model(x)
        loss = loss_function(output, y)
        found[f"{name} hvp"] = list(
            hessian_vector_product(loss, parameters, [torch.ones_like(p) for p in parameters])
        )
        found[f"{name} ggnvp"] = list(
            ggn_vector_product(loss, output, model, [torch.ones_like(p) for p in parameters])
        )
    return found


def curvlinops(torch: Any, folder: Path) -> Found:
    """Hessians, Gauss-Newton, Fisher and Kronecker-factored matrices as linear operators."""
    import curvlinops as c
    import numpy as np

    nn = torch.nn
    model = filled(torch, nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)).double())
    loss = nn.CrossEntropyLoss()
    x, y = table(torch)
    data = [(x[:20], y[:20]), (x[20:], y[20:])]
    parameters = list(model.parameters())
    found: Found = {}
    size = sum(p.numel() for p in parameters)
    vector = numbers(torch, size, 2)
    for name in ("HessianLinearOperator", "GGNLinearOperator", "EFLinearOperator"):
        operator = getattr(c, name)(model, loss, parameters, data)
        found[name] = operator @ vector
        found[f"{name} scipy"] = np.asarray(operator.to_scipy() @ vector.numpy()[:, 0])
    kfac = c.KFACLinearOperator(
        model, loss, parameters, data, fisher_type=c.FisherType.TYPE2, separate_weight_and_bias=False
    )
    found["kfac"] = kfac @ vector
    jacobian = c.JacobianLinearOperator(model, parameters, data)
    found["jacobian"] = jacobian @ vector
    return found


def higher(torch: Any, folder: Path) -> Found:
    """Steps of an inner optimizer that are differentiated by the numbers it began with."""
    import higher

    x, y = table(torch)
    F = torch.nn.functional
    found: Found = {}
    for name, make in (
        ("sgd", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
        ("adam", lambda p: torch.optim.Adam(p, lr=0.1)),
        ("rmsprop", lambda p: torch.optim.RMSprop(p, lr=0.1)),
        ("adagrad", lambda p: torch.optim.Adagrad(p, lr=0.1)),
    ):
        model = network(torch, 5)
        with higher.innerloop_ctx(model, make(model.parameters()), copy_initial_weights=False) as (
            inner,
            steps,
        ):
            for _ in range(3):
                steps.step(F.cross_entropy(inner(x[:20]), y[:20]))
            F.cross_entropy(inner(x[20:]), y[20:]).backward()
        found[name] = [p.grad for p in model.parameters()]
    nn = torch.nn
    layers = nn.Sequential(nn.Linear(6, 5, bias=False), nn.BatchNorm1d(5, affine=False), nn.Linear(5, 3))
    model = filled(torch, layers.double())  # parameters that are None
    with higher.innerloop_ctx(model, torch.optim.SGD(model.parameters(), lr=0.1)) as (inner, steps):
        steps.step(F.cross_entropy(inner(x[:20]), y[:20]))
        loss = F.cross_entropy(inner(x[20:]), y[20:])
        found["absent"] = torch.autograd.grad(loss, list(inner.parameters(time=0)))
        found["names"] = [name for name, _ in (*inner.named_parameters(), *inner.named_buffers())]
    return found


def torchopt(torch: Any, folder: Path) -> Found:
    """Optimizers as functions and as objects, a schedule, and implicit gradients."""
    import torchopt
    from torch.func import functional_call

    x, y = table(torch)
    F = torch.nn.functional
    found: Found = {}
    for name in ("sgd", "adam", "adamw", "rmsprop", "adagrad", "adadelta", "adamax", "radam"):
        model = network(torch, 5)
        parameters = tuple(model.parameters())
        names = [n for n, _ in model.named_parameters()]
        optimizer = torchopt.FuncOptimizer(getattr(torchopt, name)(lr=0.05))
        losses = []
        for _ in range(3):
            loss = F.cross_entropy(functional_call(model, dict(zip(names, parameters, strict=True)), (x,)), y)
            parameters = optimizer.step(loss, parameters)
            losses.append(loss)
        found[name] = losses
    model = network(torch, 5)
    optimizer = torchopt.Adam(model.parameters(), lr=0.05)
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    found["object"] = list(model.parameters())
    model, weight = network(torch, 5), torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    inner = torchopt.MetaAdam(model, lr=0.05)
    for _ in range(2):
        inner.step(weight * F.cross_entropy(model(x), y))
    F.cross_entropy(model(x), y).backward()
    found["through the steps"] = weight.grad
    schedule = torchopt.schedule.linear_schedule(1.0, 0.1, 5, 1)
    found["schedule"] = [float(schedule(i)) for i in range(7)]

    @torchopt.diff.implicit.custom_root(
        torch.func.grad(lambda w, d: ((w - d) ** 2).sum() + 0.5 * (w**2).sum(), argnums=0), argnums=1
    )
    def solve(w: Any, d: Any) -> Any:
        return d / 1.5

    d = numbers(torch, 4).requires_grad_()
    solve(torch.zeros(4, dtype=torch.float64), d).pow(2).sum().backward()
    found["implicit"] = d.grad
    return found


def asdl(torch: Any, folder: Path) -> Found:
    """Gradients of examples, gradients preconditioned by Fisher matrices of several shapes, and by others."""
    import asdl as a

    x, y = table(torch, dtype=torch.float32)
    F = torch.nn.functional
    found: Found = {}

    def gradient(make: Any) -> list[Any]:
        model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
        filled(torch, model)
        maker = make(model, a.PreconditioningConfig(data_size=len(x), damping=0.1))
        maker.setup_loss_call(F.cross_entropy, maker.setup_model_call(model, x), y)
        maker.forward_and_backward()
        return [p.grad for p in model.parameters()]

    for kind in (a.FISHER_EXACT, a.FISHER_EMP):
        found[kind] = gradient(
            lambda model, config, kind=kind: a.KfacGradientMaker(model, config, fisher_type=kind)
        )
    found["shampoo"] = gradient(a.ShampooGradientMaker)
    model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
    filled(torch, model)
    found["examples"] = a.batch_gradient(
        model, lambda: F.cross_entropy(model(x), y, reduction="sum").backward()
    )
    return found
