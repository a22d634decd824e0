"""Runs kernels of every family on small and odd sizes and compares them with the cpu in float64.

python tools/gpu_check/kernels.py [--large]

Meant to be run under compute-sanitizer (memcheck, racecheck), which is slow: each case is small, and together they
cross the borders of threads, packs, blocks and parts. --large adds sizes for which work is divided among blocks.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import taeda as torch

F = torch.nn.functional
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-4, torch.bfloat16: 6e-2, torch.float16: 2e-2}
tried = 0


def near(found: Any, expected: Any, dtype: Any, what: str) -> None:
    """Fails where two results, or tuples of them, differ."""
    global tried
    if isinstance(found, (tuple, list)):
        for one, other in zip(found, expected, strict=True):
            near(one, other, dtype, what)
        return
    tried += 1
    one, other = found.detach().cpu().double(), expected.detach().double()
    assert one.shape == other.shape, (what, one.shape, other.shape)
    alike = (one - other).abs() <= TOLERANCE[dtype] * (1 + other.abs())
    assert bool((alike | (one == other) | (one.isnan() & other.isnan())).all()), (what, dtype)


def beside(work: Callable[..., Any], dtype: Any, *operands: Any) -> None:
    """Calls `work` on the device with operands of a dtype, and on the cpu with the same numbers in float64."""
    given = [t.to(dtype) if t.is_floating_point() else t for t in operands]
    expected = work(*(t.double() if t.is_floating_point() else t for t in given))
    near(work(*(t.to("cuda") for t in given)), expected, dtype, getattr(work, "__name__", "work"))


def with_gradients(work: Callable[..., Any]) -> Callable[..., Any]:
    """The result of `work`, and the gradients of what it was given."""

    def both(*operands: Any) -> Any:
        leaves = [t.clone().requires_grad_() if t.is_floating_point() else t for t in operands]
        result = work(*leaves)
        weights = torch.arange(result.numel(), device=result.device) % 5 - 1.0
        (result * weights.to(result.dtype).reshape(result.shape)).sum().backward()
        return [result, *(t.grad for t in leaves if t.is_floating_point())]

    both.__name__ = getattr(work, "__name__", "work")
    return both


def elementwise(dtype: Any, sizes: list[int]) -> None:
    """Packs, strides, broadcasting, copies."""
    for n in sizes:
        x, y = torch.randn(n), torch.randn(n)
        beside(lambda a, b: [a + b, a * 2 - b, a.exp().sqrt(), torch.where(a > b, a, b)], dtype, x, y)
        beside(lambda a, b: [a[1:] * b[:-1], a[::3] + b[::3], a.flip(0) + b], dtype, x, y)
    m = torch.randn(33, 65)
    beside(lambda a: [a + a[:1], a + a[:, :1], (a.t() * 2).contiguous(), a.t() + a.t().clone()], dtype, m)


def reductions(dtype: Any, sizes: list[int]) -> None:
    """Folds of rows, columns, everything; running sums."""
    for n in sizes:
        x = torch.randn(3, n) * 0.5
        beside(lambda a: [a.sum(), a.sum(0), a.sum(1), a.mean(), a.amax(1), a.amin(0)], dtype, x)
        beside(lambda a: [a.t().contiguous().sum(0), a.t().sum(1), a.max(1).values], dtype, x)
        beside(lambda a: [a.double().cumsum(1), a.cummax(1).values], dtype, x)
        near((x.to("cuda") > 0).any(1).float(), (x > 0).any(1).float(), torch.float32, "any")
        near(x.to("cuda").argmax(1).float(), x.argmax(1).float(), torch.float32, "argmax")


def order(dtype: Any, sizes: list[int]) -> None:
    """Sorting, picking, scattering, what is not zero."""
    for n in sizes:
        keys = torch.randperm(n).float() / 4
        beside(lambda a: [*a.sort(), *a.sort(descending=True)], torch.float32, keys)
        few = min(n, 5)
        beside(
            lambda a, k=few: [*a.topk(k), *a.topk(k, largest=False), *a.kthvalue(k), *a.median(0)],
            torch.float32,
            keys,
        )
        beside(
            lambda a: [a.nonzero().double(), a.sort().values.double()], torch.float32, (keys * 4).long() % 7
        )
        x, index = torch.randn(n, 3), torch.randint(0, max(n // 2, 1), (n,))
        beside(lambda a, i: [a[i], a.index_select(0, i)], dtype, x, index)
        beside(lambda a, i: torch.zeros_like(a).index_add(0, i, a), dtype, x * 0.125, index)
        beside(with_gradients(lambda a, i: F.embedding(i, a)), dtype, x, index)


def named(dtype: Any, sizes: list[int]) -> None:
    """What index tensors name, read, written, added up and reduced; triangles and searches."""
    for n in sizes:
        x, index = torch.randn(n, 6), torch.randint(-n, n, (2 * n,))
        ones, other = torch.ones(2 * n, 6) * 0.125, torch.randint(0, 6, (2 * n,))
        places = index % n
        beside(with_gradients(lambda a, i: a[i]), dtype, x * 0.125, index)
        beside(with_gradients(lambda a, i, j: a[i, j]), dtype, x * 0.125, index, other)
        beside(lambda a: [a[a > 0], a[:, a[0] > 9]], dtype, x)
        beside(lambda a, i, v: a.index_put((i,), v, accumulate=True), dtype, x, index, ones)
        beside(lambda a, i, v: a.index_put((i,), v), dtype, x, torch.randperm(n), x + 1)
        beside(lambda a, i, v: a.index_add(0, i, v, alpha=2), dtype, x, places, ones)
        beside(lambda a, i, v: a.index_add(0, i, v), dtype, x, places * 0, ones / (2 * n))
        beside(lambda a, i, v: a.index_copy(0, i, v), dtype, x, torch.randperm(n), x + 1)
        beside(lambda a, i: a.index_fill(0, i, 3.0), dtype, x, index)
        wide = places.unsqueeze(1).expand(-1, 6)
        for how in ("sum", "mean", "amax", "amin"):
            beside(lambda a, i, v, h=how: a.scatter_reduce(0, i, v, h), dtype, x, wide, ones)
        beside(lambda a: [a.tril(), a.triu(-1), a.t().tril(2)], dtype, x)
        edges = torch.randn(n).sort().values
        beside(lambda e, v: torch.searchsorted(e, v).double(), torch.float32, edges, x)


def moments(dtype: Any, sizes: list[int]) -> None:
    """Variances and norms, of rows, columns and everything, with gradients."""
    for n in sizes:
        x = torch.randn(3, n) * 0.25 + 0.5
        if n > 1:
            beside(with_gradients(lambda a: a.var(1)), dtype, x)
            beside(lambda a: [a.var(), a.std(0), a.t().contiguous().var(0), *torch.var_mean(a, 1)], dtype, x)
        few = x / n
        for order in (0, 1, 2, 3, float("inf"), -float("inf")):
            norm = functools.partial(torch.linalg.vector_norm, ord=order, dim=1)
            beside(norm, dtype, few)
        beside(with_gradients(lambda a: a.norm(dim=0)), dtype, few)


def losses(dtype: Any, sizes: list[int]) -> None:
    """Of pairs of numbers, and of logarithms of probabilities."""
    for n in sizes:
        x, t = torch.randn(3, n), torch.rand(3, n)
        for how in ("none", "mean"):
            for work in (
                F.mse_loss,
                F.l1_loss,
                F.smooth_l1_loss,
                F.huber_loss,
                F.binary_cross_entropy_with_logits,
            ):
                beside(with_gradients(lambda a, b, w=work, h=how: w(a, b, reduction=h)), dtype, x, t)
        classes = torch.randint(0, n, (3,))
        beside(with_gradients(lambda a, c: F.nll_loss(a, c)), dtype, x, classes)
        if dtype in (torch.float32, torch.float64):
            probability = torch.rand(3, n) * 0.9 + 0.05
            beside(with_gradients(lambda a, b: F.binary_cross_entropy(a, b)), dtype, probability, t)


def rows(dtype: Any, sizes: list[int]) -> None:
    """Softmax, normalisation, cross entropy, and their gradients."""
    for n in sizes:
        x, classes = torch.randn(3, n), torch.randint(0, n, (3,))
        weight, bias = torch.randn(n), torch.randn(n)
        beside(with_gradients(lambda a: a.softmax(1)), dtype, x)
        beside(with_gradients(lambda a: a.log_softmax(0)), dtype, x)
        if n > 2:
            beside(with_gradients(lambda a, w, b: F.layer_norm(a, a.shape[1:], w, b)), dtype, x, weight, bias)
        beside(with_gradients(lambda a, c: F.cross_entropy(a, c)), dtype, x, classes)


def images(dtype: Any) -> None:
    """Convolution, pooling, batch normalisation, in both layouts."""
    for layout in (torch.contiguous_format, torch.channels_last):
        x = torch.randn(2, 8, 9, 7).contiguous(memory_format=layout)
        w, b = torch.randn(6, 8, 3, 3) * 0.2, torch.randn(6)
        beside(with_gradients(lambda a, k, c: F.conv2d(a, k, c, padding=1)), dtype, x, w, b)
        beside(with_gradients(lambda a: F.max_pool2d(a, 2, stride=2)), dtype, x)
        beside(with_gradients(lambda a: F.max_pool2d(a, 3, 2, 1)), dtype, x)
        beside(with_gradients(lambda a: F.avg_pool2d(a, 3, 2, 1)), dtype, x)
        scale, shift = torch.randn(8), torch.randn(8)
        norm = lambda a, s, t: F.batch_norm(a, None, None, s, t, training=True)  # noqa: E731
        beside(with_gradients(norm), dtype, x, scale, shift)
        beside(with_gradients(lambda a, s, t: F.group_norm(a, 2, s, t)), dtype, x, scale, shift)


def volumes(dtype: Any) -> None:
    """Convolutions over three dimensions."""
    x, w, b = torch.randn(2, 4, 5, 6, 7), torch.randn(6, 4, 3, 3, 3) * 0.2, torch.randn(6)
    beside(with_gradients(lambda a, k, c: F.conv3d(a, k, c, padding=1)), dtype, x, w, b)
    beside(with_gradients(lambda a, k: F.conv3d(a, k, stride=2, groups=2)), dtype, x, w[:, :2])


def matrices(dtype: Any) -> None:
    """Products, attention, recurrent layers."""
    a, b = torch.randn(5, 17, 33) * 0.3, torch.randn(5, 33, 9) * 0.3
    beside(with_gradients(torch.matmul), dtype, a, b)
    beside(with_gradients(F.linear), dtype, a, torch.randn(7, 33) * 0.3, torch.randn(7))
    beside(
        with_gradients(F.linear), dtype, torch.randn(48, 64) * 0.3, torch.randn(32, 64) * 0.3, torch.randn(32)
    )
    beside(with_gradients(torch.baddbmm), dtype, torch.randn(9), a, b)
    for rows_, columns in ((5, 7), (70, 80)):
        q, k, v = (torch.randn(2, 2, n, 16) for n in (rows_, columns, columns))
        beside(with_gradients(F.scaled_dot_product_attention), dtype, q, k, v)
        causal = lambda *qkv: F.scaled_dot_product_attention(*qkv, is_causal=True)  # noqa: E731
        beside(with_gradients(causal), dtype, q, k, v)
    if dtype in (torch.bfloat16, torch.float16):
        tensor_cores(dtype)
    if dtype == torch.float32:
        for layer in (torch.nn.LSTM(6, 10, 2), torch.nn.GRU(6, 10)):
            x = torch.randn(4, 3, 6)
            expected = layer.double()(x.double())[0]
            near(layer.float().to("cuda")(x.to("cuda"))[0], expected, dtype, type(layer).__name__)


def tensor_cores(dtype: Any) -> None:
    """Attention of halves across tiles, in both widths, with masks, and as operands lie."""
    attend = F.scaled_dot_product_attention
    for width, rows_, columns in ((64, 150, 140), (128, 70, 200), (40, 130, 65), (7, 5, 3)):
        q, k, v = (torch.randn(2, n, 2, width).transpose(1, 2) for n in (rows_, columns, columns))
        seen, added = torch.rand(rows_, columns) > 0.3, torch.randn(rows_, columns)
        seen[:, 0] = True
        for causal in (False, True):
            beside(with_gradients(lambda *qkv, c=causal: attend(*qkv, is_causal=c)), dtype, q, k, v)
        beside(with_gradients(lambda *qkv, m=seen: attend(*qkv, m.to(qkv[0].device))), dtype, q, k, v)
        beside(lambda *given: attend(*given[:3], given[3]), dtype, q, k, v, added)
        beside(with_gradients(attend), dtype, q[..., ::2], k[..., ::2], v)


def transforms_and_factors(dtype: Any) -> None:
    """NVIDIA's transforms, and its factors of one matrix and of several; of factors what does not depend on signs."""
    for sizes, dims in (((7,), (0,)), ((4, 9, 6), (0, 2)), ((3, 5, 4, 6), (0, 1, 2, 3)), ((8, 64), (1,))):
        x = torch.randn(*sizes)
        for work in (torch.fft.fftn, torch.fft.ifftn, torch.fft.rfftn):
            beside(lambda t, f=work, d=dims: torch.view_as_real(f(t, dim=d)), dtype, x)
        beside(lambda t, d=dims: torch.fft.irfftn(torch.fft.rfftn(t, dim=d), dim=d), dtype, x)
    for batch in ((), (3,), (2, 2)):
        a, b = torch.randn(*batch, 12, 12), torch.randn(*batch, 12, 5)
        definite = a @ a.mT / 12 + torch.eye(12)
        beside(torch.linalg.cholesky, dtype, definite)
        beside(lambda t: torch.linalg.cholesky(t, upper=True), dtype, definite)
        beside(torch.linalg.eigvalsh, dtype, definite)
        beside(lambda t: (lambda v, q: (q * v.unsqueeze(-2)) @ q.mT)(*torch.linalg.eigh(t)), dtype, definite)
        beside(torch.linalg.solve, dtype, definite, b)
        beside(lambda t, s: torch.linalg.solve(t, s.mT, left=False), dtype, definite, b)
        for upper in (False, True):
            solve = functools.partial(torch.linalg.solve_triangular, upper=upper)
            beside(solve, dtype, definite, b)
            beside(functools.partial(solve, left=False), dtype, definite, b.mT.contiguous())
        for work in (torch.linalg.inv, torch.linalg.det, torch.linalg.slogdet):
            beside(work, dtype, definite)
        for t in (b, b.mT):
            beside(torch.linalg.svdvals, dtype, t)
            beside(
                lambda m: (lambda u, s, v: (u * s.unsqueeze(-2)) @ v)(*torch.linalg.svd(m, False)), dtype, t
            )
            beside(lambda m: (lambda q, r: q @ r)(*torch.linalg.qr(m)), dtype, t)


def many_small() -> None:
    """LU factors of many small matrices, and systems by them."""
    for dtype in (torch.float32, torch.float64, torch.complex64):
        for n, count in ((1, 5), (3, 300), (17, 40), (32, 9)):
            a = torch.randn(count, n, n).to(dtype) + torch.eye(n) * 4
            b = torch.randn(count, n, 3).to(dtype)
            wide = torch.complex128 if dtype.is_complex else torch.float64
            for work in (
                torch.linalg.solve,
                lambda m, t: torch.linalg.lu_solve(*torch.linalg.lu_factor(m), t),
            ):
                found = work(a.to("cuda"), b.to("cuda")).cpu()
                expected = work(a.to(wide), b.to(wide))
                pair = (torch.view_as_real(t) if dtype.is_complex else t for t in (found, expected))
                near(*pair, torch.float64 if dtype == torch.float64 else torch.float32, "many small")


def optimizers() -> None:
    """Fused steps of several parameters."""
    for make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD):
        made = []
        for device in ("cpu", "cuda"):
            torch.manual_seed(3)
            parameters = [torch.randn(n, requires_grad=True) for n in (1, 5, 300)]
            moved = [p.detach().to(device).requires_grad_() for p in parameters]
            step = make(moved, lr=0.1)
            for _ in range(3):
                step.zero_grad()
                sum((p * p * p).sum() for p in moved).backward()
                step.step()
            made.append(moved)
        near(made[1], made[0], torch.float32, make.__name__)


def chance() -> None:
    """Random numbers: what holds of any."""
    x = torch.rand(1001, device="cuda")
    assert float(x.min()) >= 0 and float(x.max()) < 1 and abs(float(x.mean()) - 0.5) < 0.05
    kept = F.dropout(torch.ones(1001, device="cuda"), 0.25)
    assert bool(((kept == 0) | ((kept - 1 / 0.75).abs() < 1e-6)).all()) and abs(float(kept.mean()) - 1) < 0.1
    weights = torch.tensor([0.0, 1, 2, 0, 5], device="cuda").repeat(2000, 1)
    for count, replacement in ((1, False), (3, True), (3, False)):
        drawn = torch.multinomial(weights, count, replacement)
        assert bool((weights.gather(1, drawn) > 0).all())
        share = float((drawn == 4).float().mean())
        assert abs(share - (1 / 3 if count == 3 and not replacement else 5 / 8)) < 0.05, share
    places = torch.randperm(257, device="cuda").cpu()
    assert places.sort().values.tolist() == list(range(257))


def main() -> None:
    """All cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--large", action="store_true", help="sizes for which work is divided among blocks")
    options = parser.parse_args()
    torch.manual_seed(1)
    sizes = [1, 33, 300] + ([4099, 70001] if options.large else [])
    dtypes = [torch.float32, torch.bfloat16] + ([torch.float64, torch.float16] if options.large else [])
    for dtype in dtypes:
        for work in (elementwise, reductions, moments, order, named, rows, losses):
            work(dtype, sizes)
        images(dtype)
        volumes(dtype)
        matrices(dtype)
        if dtype in (torch.float32, torch.float64):
            transforms_and_factors(dtype)
    many_small()
    optimizers()
    chance()
    torch.cuda.synchronize()
    print(f"{tried} results of kernels are those of the cpu")


if __name__ == "__main__":
    main()
