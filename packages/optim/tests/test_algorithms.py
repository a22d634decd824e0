"""Every optimizer against its definition written in NumPy, over several steps with given gradients."""

import numpy as np
import pytest

import taeda_optim as optim

STEPS = 12


def sgd(p, g, s, t, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False):
    g = (-g if maximize else g) + weight_decay * p
    if momentum:
        s["v"] = g.copy() if t == 1 else momentum * s["v"] + (1 - dampening) * g
        g = g + momentum * s["v"] if nesterov else s["v"]
    return p - lr * g


def adam(
    p,
    g,
    s,
    t,
    lr=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    amsgrad=False,
    maximize=False,
    decoupled=False,
):
    g = -g if maximize else g
    p = p * (1 - lr * weight_decay) if decoupled else p
    g = g if decoupled else g + weight_decay * p
    b1, b2 = betas
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    s["top"] = np.maximum(s.get("top", 0), s["v"])
    second = s["top"] if amsgrad else s["v"]
    return p - lr * (s["m"] / (1 - b1**t)) / (np.sqrt(second / (1 - b2**t)) + eps)


def adamw(p, g, s, t, weight_decay=1e-2, **options):
    return adam(p, g, s, t, weight_decay=weight_decay, decoupled=True, **options)


def adamax(p, g, s, t, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, maximize=False):
    g = (-g if maximize else g) + weight_decay * p
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["u"] = np.maximum(betas[1] * s.get("u", 0), np.abs(g) + eps)
    return p - lr / (1 - betas[0] ** t) * s["m"] / s["u"]


def nadam(
    p,
    g,
    s,
    t,
    lr=2e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    momentum_decay=4e-3,
    decoupled_weight_decay=False,
):
    if decoupled_weight_decay:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    b1, b2 = betas
    mu = b1 * (1 - 0.5 * 0.96 ** (t * momentum_decay))
    after = b1 * (1 - 0.5 * 0.96 ** ((t + 1) * momentum_decay))
    s["mu"] = s.get("mu", 1.0) * mu
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    m = after * s["m"] / (1 - s["mu"] * after) + (1 - mu) * g / (1 - s["mu"])
    return p - lr * m / (np.sqrt(s["v"] / (1 - b2**t)) + eps)


def radam(p, g, s, t, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False):
    if decoupled_weight_decay:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    b1, b2 = betas
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    top = 2 / (1 - b2) - 1
    rho = top - 2 * t * b2**t / (1 - b2**t)
    m = s["m"] / (1 - b1**t)
    if rho <= 5:
        return p - lr * m
    r = np.sqrt((rho - 4) * (rho - 2) * top / ((top - 4) * (top - 2) * rho))
    return p - lr * m * r * np.sqrt(1 - b2**t) / (np.sqrt(s["v"]) + eps)


def adagrad(p, g, s, t, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10):
    g = g + weight_decay * p
    s["sum"] = s.get("sum", initial_accumulator_value) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + eps)


def adadelta(p, g, s, t, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0):
    g = g + weight_decay * p
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g * g
    delta = np.sqrt(s.get("d", 0) + eps) / np.sqrt(s["v"] + eps) * g
    s["d"] = rho * s.get("d", 0) + (1 - rho) * delta**2
    return p - lr * delta


def rmsprop(p, g, s, t, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False):
    g = g + weight_decay * p
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g * g
    s["a"] = alpha * s.get("a", 0) + (1 - alpha) * g
    step = g / (np.sqrt(s["v"] - s["a"] ** 2 if centered else s["v"]) + eps)
    s["b"] = momentum * s.get("b", 0) + step
    return p - lr * (s["b"] if momentum else step)


def rprop(p, g, s, t, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    turned = g * s.get("g", 0)
    factor = np.where(turned > 0, etas[1], np.where(turned < 0, etas[0], 1.0))
    s["size"] = np.clip(s.get("size", lr) * factor, *step_sizes)
    s["g"] = np.where(turned < 0, 0, g)
    return p - np.sign(s["g"]) * s["size"]


CASES = [
    ("SGD", sgd, {"lr": 0.1}),
    ("SGD", sgd, {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("SGD", sgd, {"lr": 0.1, "momentum": 0.9}),
    ("SGD", sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", adam, {}),
    ("Adam", adam, {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", adam, {"lr": 0.1, "betas": (0.5, 0.6), "amsgrad": True, "maximize": True}),
    ("Adam", adam, {"lr": 0.1, "amsgrad": 1, "maximize": 1.0}),
    ("SGD", sgd, {"lr": 0.1, "momentum": np.array(0.9), "nesterov": 1, "maximize": 1.0}),
    ("AdamW", adamw, {"lr": 0.1}),
    ("AdamW", adamw, {"lr": 0.1, "weight_decay": 0.2, "amsgrad": True}),
    ("Adamax", adamax, {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", nadam, {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", nadam, {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1}),
    ("RAdam", radam, {"lr": 0.1, "weight_decay": 0.1}),
    ("RAdam", radam, {"lr": 0.1, "betas": (0.9, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adagrad", adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", adadelta, {"weight_decay": 0.1}),
    ("RMSprop", rmsprop, {"weight_decay": 0.1}),
    ("RMSprop", rmsprop, {"momentum": 0.9, "centered": True}),
    ("Rprop", rprop, {}),
]


@pytest.mark.parametrize("case", range(len(CASES)), ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_optimizer_follows_its_definition(case, rng, make):
    parameter, give_grad, values = make
    name, reference, options = CASES[case]
    expected = [rng.standard_normal(shape) for shape in ((), (3,), (2, 3), (4, 1, 2))]
    params = [parameter(p) for p in expected]
    optimizer = getattr(optim, name)(params, **options)
    states = [{} for _ in params]
    for t in range(1, STEPS + 1):
        for i, param in enumerate(params):
            grad = rng.standard_normal(expected[i].shape)
            give_grad(param, grad)
            expected[i] = reference(expected[i], grad, states[i], t, **options)
        optimizer.step()
    for param, reference_value in zip(params, expected, strict=True):
        np.testing.assert_allclose(values(param), reference_value, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", sorted({c[0] for c in CASES}))
def test_parameters_without_gradients_stay_and_join_later(name, rng, make):
    parameter, give_grad, values = make
    reference = {c[0]: c[1] for c in CASES}[name]
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    a, b = rng.standard_normal((2, 3))
    pa, pb = parameter(a), parameter(b)
    optimizer = getattr(optim, name)([pa, pb], **options)
    sa, sb = {}, {}
    for t in range(1, 6):
        grads = rng.standard_normal((2, 3))
        give_grad(pa, grads[0])
        a = reference(a, grads[0], sa, t, **options)
        if t > 2:
            give_grad(pb, grads[1])
            b = reference(b, grads[1], sb, t - 2, **options)
        optimizer.step()
        np.testing.assert_allclose(values(pa), a, rtol=1e-9)
        np.testing.assert_allclose(values(pb), b, rtol=1e-9)


@pytest.mark.parametrize("large", [(), ((40961,), (0,), (3, 4097))], ids=["few", "many"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_fused_step_equals_single_operations(name, large, rng, make, monkeypatch):
    from taeda_optim import optimizer as base
    from taeda_registry.slots import tensor as tt

    fused_name = "_fused_sgd_" if name == "SGD" else "_fused_adam_"
    if getattr(getattr(tt, "ops", None), fused_name, None) is None:
        pytest.skip(f"the tensor provider has no {fused_name}")
    parameter, give_grad, values = make
    shapes = [(), (5,), (3, 4), (0, 2), (70, 33), *large]
    start = [rng.standard_normal(shape) for shape in shapes]
    options = {"lr": 0.05, "weight_decay": 0.1}
    options |= {"momentum": 0.9, "nesterov": True} if name == "SGD" else {"amsgrad": True}
    results = []
    grads = [[rng.standard_normal(shape) for shape in shapes] for _ in range(4)]
    for single in (False, True):
        monkeypatch.setattr(base, "_fused", dict.fromkeys(("_fused_sgd_", "_fused_adam_")) if single else {})
        params = [parameter(p) for p in start]
        optimizer = getattr(optim, name)(params, **options)
        for step in grads:
            for param, grad in zip(params, step, strict=True):
                give_grad(param, grad)
            optimizer.step()
        results.append([values(p) for p in params])
    for fused, single in zip(*results, strict=True):
        np.testing.assert_allclose(fused, single, rtol=1e-12, atol=1e-14)
