"""Operators on every dtype and layout beside PyTorch in one run: loops that one of them keeps from being vectors."""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Iterator

from _measure import load, parser, ratio, statements_in_turn, table

WHOLE = ("uint8", "int8", "int16", "int32", "int64")
REAL = ("float64", "float32", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *WHOLE, *REAL, *COMPLEX)

#: How matrices lie in memory: a function of a row-major one.
LAYOUTS = {
    "rows": "lambda t: t",
    "turned": "lambda t: t.t().contiguous().t()",
    "second": "lambda t: t.repeat_interleave(2, 1)[:, ::2]",
    "apart": "lambda t: t.repeat_interleave(2, 0)[::2]",
    "one row": "lambda t: t[:1].expand_as(t)",
    "one column": "lambda t: t[:, :1].expand_as(t)",
}

#: Matrices a and b of half a thousand rows: whole numbers below 100 and from 1 to 6, others between 0.1 and 1.
OPERANDS = """
import numpy
rng = numpy.random.default_rng(3)
dtype, lay = torch.{dtype}, {layout}
if dtype is torch.bool:
    a, b = (torch.from_numpy(rng.random((512, 512)) < 0.5) for _ in range(2))
elif dtype.is_floating_point or dtype.is_complex:
    a, b = (torch.from_numpy(rng.uniform(0.1, 1, (512, 512))).to(dtype) for _ in range(2))
else:
    a, b = (torch.from_numpy(rng.integers(low, high, (512, 512))).to(dtype) for low, high in ((0, 100), (1, 7)))
a, b = (lay(t) for t in (a, b))
x, y, c = a.flatten(), b.flatten(), torch.from_numpy(rng.random((512, 512)) < 0.5)
i, r = torch.from_numpy(rng.integers(0, 512, (512, 512))), torch.from_numpy(rng.permutation(512))
image = a.reshape(4, 16, 64, 64)
"""
STATEMENTS = """
a.abs(); -a; a.sign(); a.sgn(); a.square(); a.sqrt(); a.exp(); a.log(); a.tanh(); a.sigmoid(); a.floor(); a.round();
a.isnan(); a.signbit(); a.logical_not(); ~a; a.relu(); a.reciprocal(); F.gelu(a); F.silu(a); a + b; a - b; a * b; a / b;
a // b; a % b; a.fmod(b); a ** 2; a ** 3; a ** b; a + 1; a * 1.5; a / 2; a // 3; a % 3; a + b[0]; a * b[:, :1];
a + b.t(); a[:, ::2] + b[:, ::2]; a.maximum(b); a.fmax(b); a.clamp(1, 2); a == b; a < b; a == 1; a.isclose(b); a & b;
a | b; a ^ b; a << b; a >> b; a.logical_and(b); a.copysign(b); a.heaviside(b); torch.lerp(a, b, 0.3);
torch.addcmul(a, a, b); torch.addcdiv(a, a, b); torch.where(c, a, b); a.masked_fill(c, 1); a.sum(); a.sum(0); a.sum(1);
a.prod(); a.mean(0); a.std(1); a.amax(); a.amax(0); a.amax(1); a.max(0); a.max(1); a.argmax(); a.any(); a.any(0);
a.any(1); a.all(1); a.aminmax(); a.count_nonzero(); a.nonzero(); a.norm(); a.logsumexp(0); x.cumsum(0); a.cumsum(0);
a.cumsum(1); x.cumprod(0); a.cummax(1); a.diff(); x.sort(); a.sort(1); x.argsort(); a.median(1); x.kthvalue(100);
x.topk(10); a.topk(10); x.unique(); x.unique_consecutive(); x.bincount(); a.softmax(0); a.softmax(1);
F.layer_norm(a, (512,)); a.clone(); a.t().contiguous(); a.flip(0); a.flip(1); a.roll(5); a.tril(); torch.cat([a, b]);
torch.stack([a, b], 2); a.repeat(2, 2); a.repeat_interleave(3, 1); a[c]; a[r]; a[:, r]; a.gather(0, i); a.gather(1, i);
a.take(i); a.scatter(1, i, b); a.scatter_add(0, i, b); a.index_add(0, r, b); a.masked_scatter(c, b); a @ b;
torch.bmm(a.view(8, 64, 512), b.view(8, 512, 64)); a.mv(b[0]); x.dot(y); torch.outer(x[:512], y[:512]); a.cov();
torch.cdist(a[:, :32], b[:, :32]); a.double(); a.float(); a.half(); a.bfloat16(); a.long(); a.int(); a.to(torch.uint8);
a.bool(); torch.full((512, 512), 1, dtype=dtype); torch.arange(100000, dtype=dtype); torch.rand(512, 512, dtype=dtype);
torch.randn(512, 512, dtype=dtype); torch.randint(100, (512, 512), dtype=dtype); F.max_pool2d(image, 2);
F.avg_pool2d(image, 2); F.interpolate(image, scale_factor=2); F.pad(image, (1, 1, 1, 1));
F.pad(image, (1, 1, 1, 1), mode="reflect"); F.conv2d(image, b[:16, :144].reshape(16, 16, 3, 3)); torch.fft.fft(a)
"""


def main() -> None:
    """Prints for each dtype the rows above a ratio, and the geometric mean of all that both libraries compute."""
    options = parser(__doc__)
    options.add_argument("--dtypes", default=",".join(DTYPES), help="names of dtypes, divided by commas")
    options.add_argument("--layouts", default="rows", help=f"some of: {', '.join(LAYOUTS)}; or all")
    options.add_argument("--only", default="", help="regular expression: statements to measure")
    options.add_argument("--above", type=float, default=1.3, help="print only rows whose ratio is above this")
    given = options.parse_args()
    libraries = load(given.libraries.split(","), threads=1)
    statements = [text for line in STATEMENTS.split(";") if re.search(given.only, text := line.strip())]
    layouts = LAYOUTS if given.layouts == "all" else given.layouts.split(",")
    for dtype, layout in itertools.product(given.dtypes.split(","), layouts):
        operands = OPERANDS.format(dtype=dtype, layout=LAYOUTS[layout])
        found: list[float] = []

        def rows(operands: str = operands, found: list[float] = found) -> Iterator[list[str]]:
            for statement in statements:
                try:
                    times = statements_in_turn(
                        libraries, operands, statement, repeats=3, clock=time.thread_time
                    )
                except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
                    continue  # one of them has no such operator for the dtype
                found.append(times["taeda"] / times["torch"])
                if found[-1] > given.above:
                    yield [
                        f"`{statement}`",
                        *(f"{value * 1e6:.1f}" for value in times.values()),
                        ratio(times),
                    ]

        title = f"{dtype}, (512, 512)" + (f", {layout}" if layout != "rows" else "")
        table(title, ["statement", *(f"{name} us" for name in libraries), "ratio"], rows())
        mean = math.exp(sum(map(math.log, found)) / max(1, len(found)))
        above = sum(value > given.above for value in found)
        print(f"\n{len(found)} rows: geometric mean {mean:.2f}, {above} above {given.above}\n", flush=True)


if __name__ == "__main__":
    main()
