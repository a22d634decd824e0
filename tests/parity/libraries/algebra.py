"""Programs over libraries of tensors and their products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, numbers


def tensorly(torch: Any, folder: Path) -> Found:
    """Decompositions of tensors on its backend of this name, and what they give back."""
    import tensorly as tl
    from tensorly.decomposition import non_negative_parafac, parafac, partial_tucker, tensor_train, tucker
    from tensorly.regression import CPRegressor
    from tensorly.tenalg import khatri_rao, kronecker, mode_dot, multi_mode_dot

    tl.set_backend("pytorch")
    x = numbers(torch, 4, 5, 3)
    cp = parafac(x, rank=3, init="svd", n_iter_max=20)
    core, factors = tucker(x, rank=[2, 3, 2])
    partial, _ = partial_tucker(x, rank=[2, 2], modes=[0, 2])
    train = tensor_train(x, rank=[1, 2, 2, 1])
    positive = non_negative_parafac(x.abs(), rank=2, init="svd", n_iter_max=10)
    learner = CPRegressor(weight_rank=1, n_iter_max=5, random_state=0, verbose=0)
    learner.fit(numbers(torch, 10, 3, 3), numbers(torch, 10, seed=1))
    leaf = x.clone().requires_grad_()
    tl.norm(multi_mode_dot(leaf, [numbers(torch, 2, 4), numbers(torch, 2, 5)], modes=[0, 1])).backward()
    return {
        "cp": tl.cp_to_tensor(cp),
        "tucker": tl.tucker_to_tensor((core, factors)),
        "partial": tl.norm(partial[0]),
        "train": tl.tt_to_tensor(train),
        "positive": tl.cp_to_tensor(positive),
        "unfolded": tl.unfold(x, 1),
        "folded": tl.fold(tl.unfold(x, 2), 2, x.shape),
        "kr": khatri_rao([x[0], x[1]]),
        "kronecker": kronecker([x[0], x[1]]),
        "mode": mode_dot(x, numbers(torch, 2, 5), 1),
        "gradient": leaf.grad,
        "predicted": list(learner.predict(numbers(torch, 2, 3, 3)).shape),
        "backend": tl.get_backend(),
        "solved": tl.solve(x[0, :3, :3], x[1, :3]),
        "sorted": tl.sort(x, 1),
        "svd": tl.truncated_svd(tl.unfold(x, 0), 2)[1],
    }


def entmax(torch: Any, folder: Path) -> Found:
    """Sparse maps to probabilities, their losses and gradients."""
    import entmax as e

    found: Found = {}
    y = torch.tensor([1, 0, 3])
    for name in (
        "sparsemax",
        "entmax15",
        "sparsemax_bisect",
        "entmax_bisect",
        "normmax_bisect",
        "budget_bisect",
    ):
        x = numbers(torch, 3, 6).requires_grad_()
        options = {"budget": 2} if name == "budget_bisect" else {}
        result = getattr(e, name)(x, dim=-1, **options)
        (result * numbers(torch, 3, 6, seed=1)).sum().backward()
        found |= {name: result, f"{name} gradient": x.grad}
    for name in ("SparsemaxLoss", "Entmax15Loss", "EntmaxBisectLoss", "SparsemaxBisectLoss"):
        x = numbers(torch, 3, 6).requires_grad_()
        loss = getattr(e, name)(reduction="elementwise_mean")(x, y)
        loss.backward()
        found |= {name: loss, f"{name} gradient": x.grad}
    alpha = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    e.entmax_bisect(numbers(torch, 3, 6), alpha)[:, 0].sum().backward()
    found["alpha"] = alpha.grad
    return found


def torchcrf(torch: Any, folder: Path) -> Found:
    """The likelihood of tags, with masks, and the best tags."""
    from torchcrf import CRF

    model = filled(torch, CRF(4, batch_first=True).double())
    scores = numbers(torch, 3, 5, 4).requires_grad_()
    tags = torch.arange(15).reshape(3, 5) % 4
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], dtype=torch.uint8)
    found: Found = {
        r: model(scores, tags, mask.bool(), reduction=r) for r in ("none", "sum", "mean", "token_mean")
    }
    found["sum"].backward()
    return {
        **found,
        "gradient": scores.grad,
        "transitions": model.transitions.grad,
        "decoded": model.decode(scores, mask.bool()),
        "all": model.decode(scores),
        "text": repr(model),
    }


def unfold_nd(torch: Any, folder: Path) -> Found:
    """Windows of one to three dimensions, put back too."""
    import unfoldNd as u

    found: Found = {}
    for n in (1, 2, 3):
        x = numbers(torch, 2, 3, *(6,) * n).requires_grad_()
        windows = u.UnfoldNd(2, dilation=1, padding=1, stride=2)(x)
        windows.pow(2).sum().backward()
        found |= {f"windows {n}": windows, f"gradient {n}": x.grad}
        found[f"back {n}"] = u.FoldNd((6,) * n, 2, padding=1, stride=2)(windows)
        kernel = u.UnfoldTransposeNd(2, stride=2)
        found[f"transposed {n}"] = kernel(x)
    return found


def geoopt(torch: Any, folder: Path) -> Found:
    """Manifolds: ways along them and back, distances; optimizers that stay on them."""
    import geoopt as g

    found: Found = {}
    for name, manifold, raw in (
        ("ball", g.PoincareBall(c=1.0), 0.1 * numbers(torch, 5, 3)),
        ("sphere", g.Sphere(), numbers(torch, 5, 3)),
        ("lorentz", g.Lorentz(), numbers(torch, 5, 4)),
        ("stiefel", g.Stiefel(), numbers(torch, 5, 3)),
        ("euclidean", g.Euclidean(1), numbers(torch, 5, 3)),
        ("stereographic", g.Stereographic(k=-0.5), 0.1 * numbers(torch, 5, 3)),
        ("positive", g.SymmetricPositiveDefinite(), _positive(torch)),
    ):
        x = manifold.projx(raw)
        direction = manifold.proju(x, 0.1 * numbers(torch, *raw.shape, seed=1))
        found[f"{name} retracted"] = manifold.retr(x, direction)
        found[f"{name} inner"] = manifold.inner(x, direction)
        if name != "stiefel":
            found[f"{name} distance"] = manifold.dist(x, manifold.expmap(x, direction))
        point = g.ManifoldParameter(x.clone(), manifold=manifold)
        for kind, options in (
            (g.optim.RiemannianAdam, {"lr": 1e-2}),
            (g.optim.RiemannianSGD, {"lr": 1e-2, "momentum": 0.9}),
        ):
            optimizer = kind([point], stabilize=2, **options)
            for _ in range(3):
                optimizer.zero_grad()
                (point - 0.3).pow(2).sum().backward()
                optimizer.step()
            found[f"{name} {kind.__name__}"] = point.detach().clone()
        found[f"{name} text"] = repr(manifold)
        torch.save(point, folder / "point.pt")
        found[f"{name} kept"] = torch.load(folder / "point.pt", weights_only=False)
    ball = g.PoincareBall()
    x, y = 0.2 * numbers(torch, 2, 3), 0.2 * numbers(torch, 2, 3, seed=1)
    found["mobius"] = [
        ball.mobius_add(x, y),
        ball.mobius_matvec(numbers(torch, 3, 3), x),
        ball.logmap(x, y),
        ball.transp(x, y, 0.1 * y),
        ball.geodesic(torch.tensor(0.3).double(), x, y),
        ball.dist0(x),
    ]
    return found


def _positive(torch: Any) -> Any:
    a = numbers(torch, 2, 3, 3)
    return a @ a.mT + 3 * torch.eye(3, dtype=torch.float64)


def opt_einsum(torch: Any, folder: Path) -> Found:
    """Contractions along the best path, with gradients, and expressions with constants."""
    import opt_einsum as o

    a, b, c = (numbers(torch, *shape).requires_grad_() for shape in ((3, 4), (4, 5), (5, 3)))
    whole = o.contract("ij,jk,kl->il", a, b, c)
    whole.sum().backward()
    expression = o.contract_expression("ij,jk,kl->", (3, 4), (4, 5), (5, 3))
    path, info = o.contract_path("ij,jk,kl->il", a, b, c, optimize="greedy")
    return {
        "whole": whole,
        "gradients": [a.grad, b.grad, c.grad],
        "expression": expression(a, b, c),
        "constants": o.contract_expression("ij,jk,kl->", a, (4, 5), c, constants=[0, 2])(b),
        "path": [list(p) for p in path],
        "cost": float(info.opt_cost),
        "many": o.contract(
            "abc,cd,abd->ab", numbers(torch, 2, 3, 4), numbers(torch, 4, 2), numbers(torch, 2, 3, 2)
        ),
    }


def jaxtyping(torch: Any, folder: Path) -> Found:
    """Shapes and dtypes in annotations, checked at calls."""
    from beartype import beartype
    from jaxtyping import Float, Int, Shaped, TypeCheckError, jaxtyped

    Tensor = torch.Tensor

    def product(x: Any, y: Any) -> Any:
        return x @ y

    # Annotations by hand: as code they would be read as types.
    kinds = {"x": Float[Tensor, "a b"], "y": Float[Tensor, "b c"], "return": Float[Tensor, "a c"]}
    product.__annotations__ = kinds
    product = jaxtyped(typechecker=beartype)(product)

    answers = [
        isinstance(torch.ones(2, 3), Float[Tensor, "2 3"]),
        isinstance(torch.ones(2), Int[Tensor, "2"]),
        isinstance(torch.ones(2, dtype=torch.int32), Int[Tensor, "_"]),
        isinstance(torch.ones(2, 3), Shaped[Tensor, "... 3"]),
        isinstance(torch.ones(2).bfloat16(), Float[Tensor, "2"]),
    ]
    try:
        product(torch.ones(2, 3), torch.ones(2, 3))
        refused = False
    except TypeCheckError:
        refused = True
    return {"answers": answers, "refused": refused, "made": product(torch.ones(2, 3), torch.ones(3, 1))}


def functorch(torch: Any, folder: Path) -> Found:
    """The package beside the library: functions of parameters, ensembles, gradients of examples."""
    import functorch as f
    from torch.func import functional_call, jacfwd, jacrev, stack_module_state, vmap

    from libraries.common import network, table

    x, y = table(torch)
    net = network(torch, 5)
    function, parameters = f.make_functional(net)

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(function(parameters, x[None]), y[None])

    examples = f.vmap(f.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    nets = [network(torch, 5) for _ in range(3)]
    with torch.no_grad():
        for i, each in enumerate(nets):
            each[0].weight.mul_(i + 1)
    together, states, buffers = f.combine_state_for_ensemble(nets)
    stacked, rest = stack_module_state(nets)
    whole = vmap(lambda p, b: functional_call(nets[0], (p, b), (x,)))(stacked, rest)
    jacobians = [each(lambda v: net(v).tanh())(x[0]) for each in (jacrev, jacfwd)]
    named = vmap(lambda v, *, scale: v * scale)(x, scale=torch.arange(6.0))
    return {
        "examples": list(examples),
        "ensemble": f.vmap(together, (0, 0, None))(states, buffers, x),
        "whole": whole,
        "jacobians": jacobians,
        "named": named,
    }


def e3nn(torch: Any, folder: Path) -> Found:
    """Equivariant products, linear maps, norms and harmonics, their gradients and a file of them."""
    from e3nn import nn, o3

    kinds = o3.Irreps("2x0e+1x1o+1x2e")
    x, y = numbers(torch, 4, kinds.dim), numbers(torch, 4, kinds.dim, seed=1)
    points = numbers(torch, 5, 3)
    product = filled(torch, o3.FullyConnectedTensorProduct(kinds, kinds, "2x0e+1x1o").double())
    linear = filled(torch, o3.Linear(kinds, "3x0e+2x1o").double())
    norm = nn.BatchNorm(kinds).double()
    leaf = x.clone().requires_grad_()
    (product(leaf, y).square().sum() + linear(norm(leaf)).square().sum()).backward()
    place = folder / "product.pt"
    torch.save(product.state_dict(), place)
    again = o3.FullyConnectedTensorProduct(kinds, kinds, "2x0e+1x1o").double()
    again.load_state_dict(torch.load(place))
    angles = [torch.tensor(value, dtype=torch.float64) for value in (0.1, 0.2, 0.3)]
    turned = product(x @ kinds.D_from_angles(*angles).T, y @ kinds.D_from_angles(*angles).T)
    same = product(x, y) @ product.irreps_out.D_from_angles(*angles).T
    return {
        "text": [repr(product), repr(linear)],
        "keys": list(product.state_dict()),
        "product": again(x, y),
        "equivariant": bool(torch.allclose(turned, same, atol=1e-5)),
        "gradient": leaf.grad,
        "gradients": [p.grad for p in (*product.parameters(), *linear.parameters(), *norm.parameters())],
        "harmonics": o3.spherical_harmonics(range(4), points, True, "component"),
        "wigner": o3.wigner_3j(1, 1, 2),
        "quaternions": o3.angles_to_quaternion(*angles),
        "norms": o3.Norm(kinds)(x),
    }
