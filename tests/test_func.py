"""Transforms of programs against loops and differences: what `taeda.func` says of vmap, gradients and Jacobians."""

import math

import numpy as np
import pytest

import taeda
from taeda.func import (
    debug_unwrap,
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    rearrange,
    stack_module_state,
    vjp,
    vmap,
)


def doubles(*shape, seed=5):
    return taeda.tensor(np.random.default_rng(seed).standard_normal(shape))


def same(found, expected, rtol=1e-10):
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=rtol, atol=1e-12)


def looped(function, *args):
    return taeda.stack([function(*each) for each in zip(*args, strict=True)])


PROGRAMS = {
    "arithmetic": lambda a, b: (a.unsqueeze(-1) * b + 2).sum(0).tanh(),
    "matrices": lambda a, b: (b @ a).softmax(0),
    "views": lambda a, b: b.t().reshape(-1, 9)[:, 1:].flatten().roll(1),
    "slices": lambda a, b: taeda.cat([a[1:], b[0], b[-1, :2]]),
    "norms": lambda a, b: taeda.nn.functional.layer_norm(b, (3,)).flatten() + a.norm(),
    "sorts": lambda a, b: b.sort(1).values.cumsum(0) + a.max(),
    "picks": lambda a, b: b[a.argsort()[:2]].gather(1, b.argsort(1)[:2]),
    "solves": lambda a, b: taeda.linalg.solve(b @ b.t() + 3 * taeda.eye(3), a),
    "pads": lambda a, b: taeda.nn.functional.pad(b, (1, 2)) + taeda.diag_embed(a).sum(),
    "pieces": lambda a, b: taeda.fft.fft(a, n=5).abs(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_map_is_a_loop(name):
    a, b = doubles(4, 3), doubles(4, 3, 3, seed=6)
    same(vmap(PROGRAMS[name])(a, b), looped(PROGRAMS[name], a, b))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_examples_are_a_loop(name):
    a, b = doubles(4, 3), doubles(4, 3, 3, seed=6)
    total = grad(lambda x, y: PROGRAMS[name](x, y).sum(), argnums=(0, 1))
    found = vmap(total)(a, b)
    for at in (0, 1):
        same(found[at], taeda.stack([total(x, y)[at] for x, y in zip(a, b, strict=True)]), rtol=1e-8)


def test_shared_arguments_have_a_gradient_for_each_example():
    x, w = doubles(5, 3), doubles(3, 2, seed=7)
    loss = grad(lambda w, x: (x @ w).tanh().sum())
    same(vmap(loss, in_dims=(None, 0))(w, x), taeda.stack([loss(w, each) for each in x]))


def test_jacobians_agree_with_each_other_and_with_differences():
    x = doubles(3)

    def function(a):
        return taeda.stack([a.prod(), (a * a).sum(), a[0].sin(), a[2] / a[1]])

    found = jacrev(function)(x)
    same(jacfwd(function)(x), found)
    h = 1e-6
    steps = [(function(x + h * e) - function(x - h * e)) / (2 * h) for e in taeda.eye(3, dtype=taeda.float64)]
    np.testing.assert_allclose(found.numpy(), taeda.stack(steps, 1).numpy(), rtol=1e-5, atol=1e-8)
    same(jvp(function, (x,), (doubles(3, seed=9),))[1], found @ doubles(3, seed=9))
    same(vjp(function, x)[1](doubles(4, seed=8))[0], found.t() @ doubles(4, seed=8))


def test_hessians():
    x, a = doubles(3), doubles(3, 3, seed=4)
    same(hessian(lambda v: v @ a @ v)(x), a + a.t())
    same(vmap(hessian(lambda v: (v**3).sum()))(doubles(2, 3)), taeda.diag_embed(6 * doubles(2, 3)))


def test_derivatives_do_not_see_each_other():
    """d/dx (x * d/dy (x + y)) = 1."""
    found = grad(lambda x: x * grad(lambda y: x + y)(taeda.tensor(2.0)))(taeda.tensor(3.0))
    assert found.item() == 1.0


def test_what_is_outside_keeps_its_history():
    w = doubles(3).requires_grad_()
    x = doubles(3, seed=2)
    value = grad(lambda a: (a * a * w).sum())(x)
    assert value.requires_grad
    value.sum().backward()
    same(w.grad, 2 * x)
    assert not grad(lambda a: (a * a).sum())(x).requires_grad
    with taeda.no_grad():
        assert not grad(lambda a: (a * a * w).sum())(x).requires_grad


NUMBERS = {
    "a + 1.5": lambda a: a + 1.5,
    "1.5 - a": lambda a: 1.5 - a,
    "a ** 2.5": lambda a: a**2.5,
    "where": lambda a: taeda.where(a > 0, a, 0.0),
    "lerp": lambda a: taeda.lerp(a, a + 1, 0.3),
    "logsumexp": lambda a: a.logsumexp(0),
    "beside a number of float64": lambda a: a + taeda.tensor(1.0, dtype=taeda.float64),
    "beside a vector of float64": lambda a: a + taeda.ones(2, dtype=taeda.float64),
    "beside an integer": lambda a: a * taeda.tensor(3),
}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", NUMBERS)
def test_examples_without_dimensions_promote_as_they_do_alone(name, dtype):
    """A number does not widen an example, though the batch of such examples is a vector."""
    x = taeda.tensor([1, 2, 3], dtype=getattr(taeda, dtype))
    expected = taeda.stack([NUMBERS[name](a) for a in x])
    found = vmap(NUMBERS[name])(x)
    assert found.dtype is expected.dtype
    same(found, expected, rtol=1e-3)


def test_counts_of_shifts_and_classes_need_not_be_read():
    counts = taeda.tensor([0, 1, 70])
    shifted = vmap(taeda.bitwise_left_shift)(taeda.ones(3, 2, dtype=taeda.int64), counts)
    assert shifted.tolist() == [[1, 1], [2, 2], [0, 0]]
    one_hot = vmap(lambda c: taeda.nn.functional.one_hot(c, 3))(taeda.tensor([2, 0]))
    assert one_hot.tolist() == [[0, 0, 1], [1, 0, 0]] and one_hot.dtype is taeda.int64
    assert vmap(lambda s: taeda.normal(0.0, s), randomness="different")(taeda.zeros(4)).tolist() == [0.0] * 4


@pytest.mark.parametrize("change", [lambda x: x.resize_(2, 2), lambda x: x.resize_as_(taeda.ones(2))])
def test_an_example_has_no_memory_to_resize(change):
    with pytest.raises(RuntimeError, match="belongs to level 'vmap'"):
        vmap(lambda x: change(x.clone()))(taeda.ones(3, 4))


def test_writing_in_place():
    def function(a):
        made = a.clone()
        made[0] = 5
        made += a.sum()
        made.view(-1)[1:].mul_(2)
        return made

    a = doubles(4, 3)
    same(vmap(function)(a), looped(function, a))
    shared = taeda.zeros(3, dtype=taeda.float64)
    with pytest.raises(RuntimeError, match="that all examples share"):
        vmap(lambda row: shared.add_(row))(a)
    assert shared.tolist() == [0, 0, 0]


def test_randomness():
    x = taeda.zeros(4, 100)
    with pytest.raises(
        RuntimeError, match=r"called random operation while in randomness error mode.*'different'"
    ):
        vmap(lambda row: row + taeda.rand(100))(x)
    different = vmap(lambda row: row + taeda.rand(100), randomness="different")(x)
    equal = vmap(lambda row: row + taeda.rand(100), randomness="same")(x)
    assert not taeda.equal(different[0], different[1]) and taeda.equal(equal[0], equal[1])
    kept = vmap(lambda row: taeda.nn.functional.dropout(row + 1, 0.5), randomness="different")(x)
    assert 100 < int((kept != 0).sum()) < 300
    chances = x + 0.5
    for draw in (lambda row: taeda.bernoulli(row), lambda row: taeda.bernoulli(chances[0]) + 0 * row):
        tossed = vmap(draw, randomness="different")(chances)
        assert set(tossed.flatten().tolist()) == {0, 1} and not taeda.equal(tossed[0], tossed[1])
        assert taeda.equal(*vmap(draw, randomness="same")(chances)[:2])

    def waits(row):
        return taeda.distributions.Gamma(row, row).rsample()

    rates = (x + 2).requires_grad_()
    drawn = vmap(waits, randomness="different")(rates)
    assert abs(drawn.mean().item() - 1) < 0.2 and not taeda.equal(drawn[0], drawn[1])
    assert taeda.autograd.grad(drawn.sum(), rates)[0].shape == rates.shape
    shares = vmap(
        lambda row: taeda.distributions.Dirichlet(row).sample(),
        in_dims=1,
        randomness="different",
    )(rates)
    assert shares.shape == (100, 4) and taeda.allclose(shares.sum(1), taeda.ones(100))
    with pytest.raises(RuntimeError, match=r"gamma samples .* randomness='different', found 'same'"):
        vmap(waits, randomness="same")(rates)


def test_distributions_of_examples_check_what_they_are_given():
    x, scale = doubles(4, 3), doubles(4, 3).abs() + 0.5
    for kind in ("Normal", "Laplace", "Gumbel", "Cauchy"):
        made = getattr(taeda.distributions, kind)
        expected = made(x, scale).log_prob(x + 1)
        assert taeda.equal(vmap(lambda row, s, made=made: made(row, s).log_prob(row + 1))(x, scale), expected)
    shapes = vmap(lambda s: taeda.distributions.MultivariateNormal(taeda.zeros(2), s).log_prob(taeda.ones(2)))
    assert taeda.allclose(shapes(taeda.eye(2).expand(3, 2, 2)), taeda.full((3,), -math.log(2 * math.pi) - 1))
    scale[2, 1] = -1.0
    with pytest.raises(ValueError, match="Expected parameter scale"):
        vmap(lambda row, s: taeda.distributions.Normal(row, s).log_prob(row))(x, scale)
    with pytest.raises(ValueError, match="within the support"):
        vmap(lambda value: taeda.distributions.Exponential(1.0).log_prob(value))(taeda.tensor([1.0, -1.0]))


def test_samples_by_rejection_are_of_each_example():
    counts, chances = taeda.tensor([3.0, 40.0, 500.0]), taeda.tensor([0.2, 0.5, 0.9])
    draw = vmap(lambda n, p: taeda.distributions.Binomial(n, p).sample((4000,)), randomness="different")
    means = draw(counts, chances).mean(1)
    tolerance = 6 * (counts * chances * (1 - chances) / 4000).sqrt()
    assert ((means - counts * chances).abs() < tolerance).all()
    shared = taeda.full((50,), 2.5)
    for sample in (
        lambda: taeda.binomial(shared * 4, shared / 5),
        lambda: taeda._standard_gamma(shared),
        lambda: taeda.distributions.VonMises(shared, shared).sample(),
    ):
        rows = vmap(lambda row, sample=sample: row + sample(), randomness="different")(taeda.zeros(3, 50))
        assert not taeda.equal(rows[0], rows[1])
        rows = vmap(lambda row, sample=sample: row + sample(), randomness="same")(taeda.zeros(3, 50))
        assert taeda.equal(rows[0], rows[1])
        with pytest.raises(RuntimeError, match="called random operation"):
            vmap(lambda row, sample=sample: row + sample())(taeda.zeros(3, 50))
    with pytest.raises(RuntimeError, match="argument 'count' has a negative number"):
        vmap(taeda.binomial, randomness="different")(-counts, chances)


def test_gamma_samples_of_a_shared_concentration_have_gradients():
    shape = taeda.full((2000,), 1.5, requires_grad=True)
    rows = vmap(
        lambda row: row + taeda.distributions.Gamma(shape, taeda.ones(2000)).rsample(), randomness="different"
    )(taeda.zeros(2, 2000))
    (found,) = taeda.autograd.grad(rows.sum(), shape)
    assert abs(found.mean().item() / 2 - 1) < 0.1  # the mean of a sample is its shape


def test_what_cannot_be_mapped_says_so():
    x = doubles(3, 2)
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(lambda row: row if row.sum() > 0 else -row)(x)
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(lambda row: row.sum().item())(x)
    with pytest.raises(RuntimeError, match="several shapes"):
        vmap(lambda row: row.nonzero())(taeda.tensor([[0, 1], [1, 1]]))
    with pytest.raises(ValueError, match="sizes 3 and 2"):
        vmap(lambda a, b: a + b)(x, doubles(2, 2))
    with pytest.raises(ValueError, match="expected tensors"):
        vmap(lambda row: 3)(x)
    with pytest.raises(ValueError, match="maps no argument"):
        vmap(lambda row: row, in_dims=(None,))(x)
    with pytest.raises(RuntimeError, match="expected one number"):
        grad(lambda row: row * 2)(x)
    with pytest.raises(RuntimeError, match="'argnums'"):
        grad(lambda row: row.sum(), argnums=1)(x)


def test_dimensions_chunks_and_containers():
    x = doubles(2, 5)
    same(vmap(lambda c: c * 2, in_dims=1, out_dims=1)(x), x * 2)
    same(vmap(lambda c: c.sum(), in_dims=-1, chunk_size=2)(x), x.sum(0))
    found = vmap(lambda d: {"a": d["x"] + d["y"], "b": (d["x"],)}, in_dims=({"x": 0, "y": None},))(
        {"x": x, "y": taeda.ones(5, dtype=taeda.float64)}
    )
    same(found["a"], x + 1)
    same(found["b"][0], x)


def test_own_rules_of_own_operators():
    with _twice() as (twice, seen):
        same(vmap(lambda row: twice(row) + 1)(doubles(3, 2)), doubles(3, 2) * 2 + 1)
        assert seen == [3]


class _twice:
    """An operator with a rule that tells the size of the batch that it was called with."""

    def __enter__(self):
        @taeda.library.custom_op("mapped::twice", mutates_args=())
        def twice(x: taeda.Tensor) -> taeda.Tensor:
            return x * 2

        seen = []

        @twice.register_vmap
        def rule(info, dims, x):
            seen.append(info.batch_size)
            return x * 2, dims[0]

        self.made = twice
        return twice, seen

    def __exit__(self, *exception):
        self.made.remove()


def test_own_operators_of_lists():
    @taeda.library.custom_op("mapped::cut", mutates_args=())
    def cut(x: taeda.Tensor, parts: int) -> tuple[list[taeda.Tensor], int]:
        return [taeda.tensor(part) for part in np.array_split(x.numpy(), parts)], parts

    @taeda.library.custom_op("mapped::joined", mutates_args=())
    def joined(xs: list[taeda.Tensor], dim: int) -> taeda.Tensor:
        return taeda.tensor(np.concatenate([x.numpy() for x in xs], dim))

    try:
        rows = doubles(3, 5)
        (first, second), count = vmap(lambda row: cut(row, 2), out_dims=([0, 1], None))(rows)
        same(first, rows[:, :3])
        same(second, rows[:, 3:].t())
        assert count == 2
        seen = []

        @taeda.library.register_vmap("mapped::cut")
        def rule(info, dims, x, parts):
            seen.append((info.batch_size, dims))
            columns, _ = cut(x.movedim(dims[0], -1).contiguous(), parts)
            return (columns, parts), ([-1] * parts, None)

        (first, second), _ = vmap(lambda row: cut(row, 2), out_dims=([0, 0], None))(rows)
        same(second, rows[:, 3:])
        nested = vmap(vmap(lambda row: cut(row, 2)[0][0]))(rows.expand(2, 3, 5).contiguous())
        same(nested, rows[:, :3].expand(2, 3, 3))
        assert seen[0] == (3, (0, None)) and len(seen) > 1

        @joined.register_vmap
        def together(info, dims, xs, dim):
            assert dims == ([0, None], None)
            return joined([xs[0], xs[1].expand(info.batch_size, *xs[1].shape)], dim + 1), 0

        found = vmap(lambda row: joined([row, doubles(2)], 0))(rows)
        same(found, taeda.cat([rows, doubles(2).expand(3, 2)], 1))
    finally:
        cut.remove()
        joined.remove()


def test_ensembles_of_modules():
    nets = [taeda.nn.Linear(3, 2).to(taeda.float64) for _ in range(3)]
    params, buffers = stack_module_state(nets)
    x = doubles(4, 3)
    found = vmap(lambda p, b: functional_call(nets[0], (p, b), (x,)))(params, buffers)
    same(found, taeda.stack([net(x) for net in nets]))


def test_unwrapping():
    seen = []
    vmap(lambda a: (seen.append(debug_unwrap(a)), a)[1])(doubles(3, 2))
    same(seen[0], doubles(3, 2))


@pytest.mark.parametrize(
    ("pattern", "sizes", "expected"),
    [
        ("a b c -> c (b a)", {}, lambda x: x.permute(2, 1, 0).reshape(4, 6)),
        ("a (b c) d -> a d b c", {"b": 3}, lambda x: x.reshape(2, 3, 1, 4).permute(0, 3, 1, 2)),
        ("... d -> d ...", {}, lambda x: x.permute(2, 0, 1)),
        ("a b c -> a 1 (b c)", {}, lambda x: x.reshape(2, 1, 12)),
    ],
)
def test_rearranging(pattern, sizes, expected):
    x = doubles(2, 3, 4)
    same(rearrange(x, pattern, **sizes), expected(x))


def test_patterns_that_do_not_fit():
    for pattern in ("a b -> b a", "a b c", "a b c -> a b d", "a (b c -> a", "a b (c d) -> a b c d"):
        with pytest.raises(ValueError, match="rearrange"):
            rearrange(doubles(2, 3, 4), pattern)


class Cube(taeda.autograd.Function):
    """x ** 3 through NumPy, which sees no tensor of a vmap, and 2 x."""

    @staticmethod
    def forward(x):
        return taeda.from_numpy(x.detach().numpy() ** 3), x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, cubes, doubled):
        (x,) = ctx.saved_tensors
        return cubes * 3 * x**2 + doubled * 2

    @staticmethod
    def vmap(info, in_dims, x):
        assert info.batch_size == x.shape[in_dims[0]] and info.randomness == "error"
        return Cube.apply(x), (in_dims[0], in_dims[0])


def test_functions_say_what_they_compute_for_a_batch():
    x = doubles(2, 3).requires_grad_()
    cubes, twice = vmap(Cube.apply, in_dims=1, out_dims=1)(x)
    same(cubes, x**3)
    same(twice, 2 * x)
    (found,) = taeda.autograd.grad((cubes + twice).sum(), x)
    same(found, 3 * x**2 + 2)
    same(vmap(vmap(lambda a: Cube.apply(a)[0]))(x), x**3)
    same(vmap(lambda a, b: Cube.apply(a)[0] * b, in_dims=(0, None))(x, taeda.tensor(2.0)), 2 * x**3)
    factors = doubles(2)
    same(vmap(lambda b: Cube.apply(x)[0].sum() * b)(factors), (x**3).sum() * factors)


def test_rules_of_functions_are_checked():
    with pytest.raises(RuntimeError, match="generate_vmap_rule"):
        type(
            "Both",
            (taeda.autograd.Function,),
            {"generate_vmap_rule": True, "vmap": staticmethod(lambda *_: 0)},
        )
    rules = {"forward": lambda x: x, "setup_context": lambda *_: None}

    def applied(rule):
        namespace = {name: staticmethod(f) for name, f in (rules | {"vmap": rule}).items()}
        return vmap(type("Ruled", (taeda.autograd.Function,), namespace).apply)(doubles(2, 3))

    same(applied(lambda info, in_dims, x: (x * info.batch_size, in_dims[0])), 2 * doubles(2, 3))
    with pytest.raises(RuntimeError, match="expected a pair"):
        applied(lambda info, in_dims, x: x)
    with pytest.raises(RuntimeError, match="out_dims"):
        applied(lambda info, in_dims, x: (x, (0, 0)))


def test_tensors_of_a_vmap_serve_in_the_next_one_at_its_depth():
    x, kept = doubles(2, 3), []

    def first(row):
        kept.append(row)
        return row

    vmap(first)(x)
    same(vmap(lambda row: row * kept[0])(x), x * x)
    assert not taeda._C._is_alias_of(kept[0], x) and taeda._C._is_alias_of(kept[0], kept[0])
    with pytest.raises(RuntimeError, match="which has ended"):
        kept[0] * 2
    with pytest.raises(RuntimeError, match="which has ended"):
        vmap(vmap(lambda element: element))(x), kept[0] + 1


class Scaled(taeda.autograd.Function):
    """Says nothing of batches: a x^3 and which elements are positive; a may be shared by the batch."""

    @staticmethod
    def forward(ctx, x, a, power):
        ctx.save_for_backward(x, a)
        ctx.power, ctx.kept = power, {"cube": x**power}
        positive = x > 0
        ctx.mark_non_differentiable(positive)
        return a * ctx.kept["cube"], positive

    @staticmethod
    def backward(ctx, grad, _):
        x, a = ctx.saved_tensors
        assert ctx.needs_input_grad[2] is False
        return grad * a * ctx.power * x ** (ctx.power - 1), grad * ctx.kept["cube"], None


class Exponential(taeda.autograd.Function):
    """Saves its output, by `setup_context`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


def test_functions_that_say_nothing_of_batches_have_gradients_under_vmap():
    x, a = doubles(2, 3).requires_grad_(), doubles(3).requires_grad_()
    outputs, positive = vmap(Scaled.apply, in_dims=(0, None, None))(x, a, 3)
    same(outputs, a * x**3)
    assert positive.dtype == taeda.bool and not positive.requires_grad
    by_x, by_a = taeda.autograd.grad(outputs.sum(), (x, a))
    same(by_x, 3 * a * x**2)
    same(by_a, (x**3).sum(0))
    shared = taeda.tensor(2.0, dtype=taeda.float64, requires_grad=True)  # its gradient has the shape of x
    scaled = vmap(lambda row: Scaled.apply(row, shared, 3)[0])(x)
    same(taeda.autograd.grad(scaled.sum(), shared)[0], (x**3).sum())


def test_derivatives_of_such_functions_by_example():
    x = doubles(2, 3)
    same(vmap(taeda.func.grad(lambda row: Scaled.apply(row, x[0], 3)[0].sum()))(x), 3 * x[0] * x**2)
    same(vmap(vmap(taeda.func.grad(Exponential.apply)))(x), x.exp())
    same(vmap(taeda.func.grad(taeda.func.grad(Exponential.apply)))(x[0]), x[0].exp())
    same(taeda.func.jacrev(Exponential.apply)(x[0]), taeda.diag(x[0].exp()))
    same(taeda.func.hessian(lambda row: Exponential.apply(row).sum())(x[0]), taeda.diag(x[0].exp()))
    leaf = x.clone().requires_grad_()
    (first,) = taeda.autograd.grad(vmap(Exponential.apply, in_dims=1)(leaf).sum(), leaf, create_graph=True)
    (second,) = taeda.autograd.grad(first.sum(), leaf)
    same(first, x.exp())
    same(second, x.exp())
    with taeda.no_grad():
        assert not vmap(Exponential.apply)(leaf).requires_grad


def test_gradients_of_such_functions_are_counted():
    def short(ctx, grad):
        return ()

    rules = {"forward": lambda ctx, x: x * 2, "backward": short}
    function = type("Short", (taeda.autograd.Function,), {n: staticmethod(f) for n, f in rules.items()})
    outputs = vmap(function.apply)(doubles(2).requires_grad_())
    with pytest.raises(RuntimeError, match=r"Short.backward: it gave 0 gradients, expected 1"):
        outputs.sum().backward()


@pytest.mark.parametrize("outside", [taeda.no_grad, taeda.enable_grad])
def test_derivatives_inside_of_vmap_whatever_is_recorded_outside(outside):
    weight, rows = taeda.rand(3, 2), taeda.rand(4, 2)

    def one(w, row):
        _, pull = taeda.func.vjp(lambda w: w @ row, w)
        return taeda.vmap(pull)(taeda.eye(3))[0], taeda.func.grad(lambda w: (w @ row).square().sum())(w)

    expected = [one(weight, row) for row in rows]
    with outside():
        found = taeda.vmap(one, in_dims=(None, 0))(weight, rows)
        jacobian = taeda.func.jacrev(lambda w: taeda.vmap(lambda row: w @ row)(rows))(weight)
    for place, result in enumerate(found):
        taeda.testing.assert_close(result, taeda.stack([each[place] for each in expected]))
    assert jacobian.abs().sum() > 0 and not found[0].requires_grad


def test_what_is_recorded_is_asked_inside_of_vmap():
    weight, rows = taeda.ones(3, requires_grad=True), taeda.ones(2, 3)

    def switched(mode):
        def one(row):
            with mode():
                return (weight * row).sum()

        return one

    assert not taeda.vmap(switched(taeda.no_grad))(rows).requires_grad
    with taeda.no_grad():
        assert not taeda.vmap(lambda row: (weight * row).sum())(rows).requires_grad
        assert taeda.vmap(switched(taeda.enable_grad))(rows).requires_grad


def test_which_tensors_of_a_vmap_show_that_they_require_a_gradient():
    """Those of a program that is differentiated inside the vmap, not those of the vmap's own function."""
    shown = []

    def note(*tensors):
        shown.append([t.requires_grad for t in tensors])

    def one(weight, row):
        def program(w):
            product = w * row
            note(w, product, product.detach(), row, row * 2)
            vmap(lambda each: note(each, each * w) or each * 1)(product)
            return product.sum()

        note(row, weight * row)
        slope = grad(program)(weight)
        note(slope)
        return slope

    rows = taeda.arange(6.0).reshape(2, 3)
    same(vmap(one, in_dims=(None, 0))(taeda.ones(3), rows), rows)
    inside = [True, True, False, False, False]
    assert shown == [[False, False], inside, [False, False], [False]]
    with pytest.raises(AttributeError, match="missing_name"):
        vmap(grad(lambda w: note(w) or w.missing_name))(rows)
    shown.clear()
    vmap(lambda row: note(row) or row * 1)(rows)
    assert shown == [[False]]


def test_such_functions_go_on_behind_an_error():
    """What a context keeps is the whole batch's again when an example's backward has failed."""

    class Once(taeda.autograd.Function):
        fails = True

        @staticmethod
        def forward(ctx, x):
            ctx.factor = 2 * x
            return x**2

        @staticmethod
        def backward(ctx, grad):
            if Once.fails:
                raise ArithmeticError("not yet")
            return grad * ctx.factor

    x = taeda.arange(3.0, requires_grad=True)
    y = vmap(Once.apply)(x)
    with pytest.raises(ArithmeticError, match="not yet"):
        y.sum().backward(retain_graph=True)
    Once.fails = False
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 4.0]


def test_arguments_that_a_mapped_function_writes_to():
    x = taeda.arange(6.0).reshape(2, 3)
    vmap(lambda row: row.add_(1), in_dims=1)(x)
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    vmap(lambda row, other: row.copy_(other), in_dims=(1, 0))(x, taeda.full((3, 2), 9.0))
    assert x.tolist() == [[9, 9, 9], [9, 9, 9]]
    nested = taeda.zeros(2, 3, 4)
    vmap(vmap(lambda row: row.add_(1), in_dims=1), in_dims=2)(nested)
    assert nested.sum().item() == 24
    leaf = taeda.ones(2, 3, requires_grad=True)
    y = leaf * 1
    vmap(lambda row: row.mul_(2), in_dims=1)(y)
    y.sum().backward()
    assert leaf.grad.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_chunks_draw_the_same_numbers_where_all_examples_do():
    drawn = vmap(lambda row: taeda.rand(2), randomness="same", chunk_size=2)(taeda.ones(6))
    assert (drawn == drawn[0]).all()


def test_places_of_results_that_are_no_numbers():
    for places in ("a", ("a",), 0.5):
        with pytest.raises(ValueError, match="out_dims"):
            vmap(lambda x: x, out_dims=places)(taeda.ones(2))


def test_composites_that_read_elements_are_called_for_each_example():
    x = taeda.tensor([[0.0, 1.0, 3.0, 3.5], [2.0, 2.5, 2.5, 6.0]])
    counts, edges = taeda.vmap(lambda row: taeda.histogram(row, 2))(x)
    assert counts.tolist() == [[2, 2], [3, 1]]
    assert edges.tolist() == [[0, 1.75, 3.5], [2, 4, 6]]
    places = taeda.vmap(lambda row: taeda.nonzero_static(row > 2.2, size=3))(x)
    assert places.squeeze(-1).tolist() == [[2, 3, -1], [1, 2, 3]]
    grids = taeda.vmap(lambda row: taeda.histogramdd(row.view(2, 2), [2, 2]).hist)(x)
    assert grids.sum((1, 2)).tolist() == [2, 2]


def test_transforms_record_under_inference_mode():
    x, v = taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, -1.0])
    with taeda.inference_mode():
        made_there = taeda.tensor([1.0, 2.0])
        for at in (x, made_there):
            assert grad(lambda y: (y**3).sum())(at).tolist() == [3.0, 12.0]
            value, moved = jvp(lambda y: y * y, (at,), (v,))
            assert value.tolist() == [1.0, 4.0] and moved.tolist() == [2.0, -4.0]
            for jacobian in (jacrev, jacfwd):
                assert jacobian(lambda y: y * y)(at).tolist() == [[2.0, 0.0], [0.0, 4.0]]
            assert hessian(lambda y: (y**3).sum())(at).tolist() == [[6.0, 0.0], [0.0, 12.0]]
            _, products = vjp(lambda y: y * y, at)
            assert products(v)[0].tolist() == [2.0, -4.0]
        assert taeda.is_inference_mode_enabled()


@pytest.mark.parametrize("turn", ["unsqueeze", "transpose", "t", "swapaxes", "squeeze", "as_strided"])
@pytest.mark.parametrize("inner", [False, True])
def test_tensors_of_a_map_are_turned_in_place(turn, inner):
    arguments = {
        "unsqueeze": (0,), "transpose": (0, 1), "t": (), "swapaxes": (0, 1), "squeeze": (1,),
        "as_strided": ((3,), (1,)),
    }  # fmt: skip

    def turned(x):
        y = x * 2 if inner else x
        alone = getattr(y, turn)(*arguments[turn]).shape
        assert getattr(y, f"{turn}_")(*arguments[turn]) is y and y.shape == alone
        return y

    x = taeda.arange(6.0).reshape(2, 3, 1)
    expected = taeda.stack([getattr(part * (2 if inner else 1), turn)(*arguments[turn]) for part in x])
    assert taeda.equal(vmap(turned)(x.clone()), expected)
    assert taeda.equal(vmap(grad(lambda x: (turned(x * 1) ** 2).sum()))(x), 2 * x * (4 if inner else 1))


def test_leaves_of_a_transform_inside_a_map():
    seen = []

    def f(x):
        y = x * 2
        seen.append([(z.is_leaf, z.requires_grad) for z in (x, y, y.detach())])
        return y.sum()

    vmap(grad(f))(taeda.ones(2, 3))
    grad(f)(taeda.ones(3))
    vmap(f)(taeda.ones(2, 3))
    assert seen[0] == seen[1] == [(True, True), (False, True), (True, False)]
    assert seen[2] == [(True, False)] * 3


@pytest.mark.parametrize("transform", [taeda.func.jacrev, taeda.func.jacfwd, taeda.func.hessian])
def test_jacobians_of_batches_lie_row_by_row(transform):
    x, rows = taeda.randn(4, 2), taeda.randn(5, 2)
    found = taeda.vmap(transform(lambda v: rows @ v.sin()))(x)
    same(found, taeda.stack([transform(lambda v: rows @ v.sin())(v) for v in x]))
    assert found.stride(0) == found[0].numel()  # programs show them as (examples, rest)
    _, pull = taeda.func.vjp(lambda v: rows @ v.sin(), x[0])
    batch = taeda.vmap(lambda v: taeda.vmap(taeda.func.vjp(lambda v: rows @ v.sin(), v)[1])(taeda.eye(5))[0])(
        x
    )
    assert batch.is_contiguous()
    same(batch[0], taeda.vmap(pull)(taeda.eye(5))[0])


@pytest.mark.parametrize("transform", ["jacrev", "jacfwd", "grad", "hessian", "grad_and_value"])
@pytest.mark.parametrize("value", [1.0, 1, None, "a", (1.0, 2.0)])
def test_what_is_no_tensor_is_not_differentiated_by(transform, value):
    with pytest.raises(ValueError, match=r"argument to differentiate by is .*expected tensors"):
        getattr(taeda.func, transform)(lambda x: x)(value)


def test_integers_are_not_differentiated_by():
    whole = taeda.tensor(2)
    with pytest.raises(RuntimeError, match="argument to differentiate by"):
        taeda.func.jacrev(lambda x: x * 2)(whole)
    with pytest.raises(ValueError, match="argument to differentiate by"):
        taeda.func.jacfwd(lambda x: x * 2)(whole)
