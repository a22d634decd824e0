"""Largest error of each transcendental function in units in the last place against mpmath: taeda beside PyTorch.

    python benchmarks/ulps.py                # all functions; writes docs/benchmarks/ulps.md with --write
    python benchmarks/ulps.py sin lgamma     # some

The numbers are drawn over each function's range, evenly and by magnitude, from a fixed seed; the same for both
libraries. An error is |found - exact| divided by the distance of the dtype's numbers at the exact value.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from mpmath import mp

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "ulps.md"
LIMITS = {"float32": 4.0, "float64": 2.0}
COUNT = 600
mp.prec = 140

Exact = Callable[..., Any]
Range = tuple[float, float]


def two(first: Range, second: Range) -> tuple[Range, Range]:
    return first, second


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _log_ndtr(x: Any) -> Any:
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def _bessel(kind: str, order: int) -> Exact:
    return lambda x: getattr(mp, kind)(order, x)


def _multigammaln(x: Any) -> Any:
    return 3 * mp.log(mp.pi) / 2 + sum(mp.loggamma(x - mp.mpf(k) / 2) for k in range(3))


# Integers among the arguments: those before the tensors and those after them.
INTEGERS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "special.polygamma": ((2,), ()),
    "special.multigammaln": ((), (3,)),
}


# Name, exact function, ranges of the arguments.
ROWS: list[tuple[str, Exact, tuple[Range, ...]]] = [
    ("exp", mp.exp, ((-80, 80),)),
    ("exp2", lambda x: mpmath.power(2, x), ((-120, 120),)),
    ("expm1", mp.expm1, ((-20, 80),)),
    ("log", mp.log, ((1e-30, 1e30),)),
    ("log2", lambda x: mp.log(x) / mp.log(2), ((1e-30, 1e30),)),
    ("log10", lambda x: mp.log(x) / mp.log(10), ((1e-30, 1e30),)),
    ("log1p", mp.log1p, ((-0.999, 1e10),)),
    ("sqrt", mp.sqrt, ((0, 1e30),)),
    ("rsqrt", lambda x: 1 / mp.sqrt(x), ((1e-30, 1e30),)),
    ("sin", mp.sin, ((-1e4, 1e4),)),
    ("cos", mp.cos, ((-1e4, 1e4),)),
    ("tan", mp.tan, ((-1e4, 1e4),)),
    ("asin", mp.asin, ((-1, 1),)),
    ("acos", mp.acos, ((-1, 1),)),
    ("atan", mp.atan, ((-1e6, 1e6),)),
    ("sinh", mp.sinh, ((-80, 80),)),
    ("cosh", mp.cosh, ((-80, 80),)),
    ("tanh", mp.tanh, ((-20, 20),)),
    ("asinh", mp.asinh, ((-1e6, 1e6),)),
    ("acosh", mp.acosh, ((1, 1e6),)),
    ("atanh", mp.atanh, ((-1, 1),)),
    ("sigmoid", _sigmoid, ((-80, 80),)),
    ("sinc", lambda x: mp.sinc(mp.pi * x), ((-30, 30),)),
    ("logit", lambda x: mp.log(x / (1 - x)), ((1e-6, 1 - 1e-6),)),
    ("erf", mp.erf, ((-5, 5),)),
    ("erfc", mp.erfc, ((-5, 9),)),
    ("erfinv", mp.erfinv, ((-0.999, 0.999),)),
    ("lgamma", lambda x: mp.log(abs(mp.gamma(x))), ((0.1, 1e4),)),
    ("digamma", mp.digamma, ((0.1, 1e4),)),
    ("special.erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), ((-5, 50),)),
    ("special.ndtr", lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, ((-9, 9),)),
    ("special.ndtri", lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), ((1e-3, 0.999),)),
    ("special.log_ndtr", _log_ndtr, ((-30, 9),)),
    ("special.entr", lambda x: -x * mp.log(x), ((1e-10, 10),)),
    ("special.i0", lambda x: mp.besseli(0, x), ((-60, 60),)),
    ("special.i0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), ((-60, 60),)),
    ("special.i1", lambda x: mp.besseli(1, x), ((-60, 60),)),
    ("special.i1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), ((-60, 60),)),
    ("special.bessel_j0", _bessel("besselj", 0), ((0, 50),)),
    ("special.bessel_j1", _bessel("besselj", 1), ((0, 50),)),
    ("special.bessel_y0", _bessel("bessely", 0), ((0.1, 50),)),
    ("special.bessel_y1", _bessel("bessely", 1), ((0.1, 50),)),
    ("special.modified_bessel_k0", _bessel("besselk", 0), ((0.1, 50),)),
    ("special.modified_bessel_k1", _bessel("besselk", 1), ((0.1, 50),)),
    ("special.scaled_modified_bessel_k0", lambda x: mp.besselk(0, x) * mp.exp(x), ((0.1, 50),)),
    ("special.scaled_modified_bessel_k1", lambda x: mp.besselk(1, x) * mp.exp(x), ((0.1, 50),)),
    ("special.spherical_bessel_j0", lambda x: mp.sin(x) / x, ((0.1, 50),)),
    ("special.polygamma", lambda x: mp.psi(2, x), ((0.1, 100),)),
    ("special.multigammaln", _multigammaln, ((1.1, 100),)),
    ("special.airy_ai", mp.airyai, ((-10, 10),)),
    ("pow", mpmath.power, two((1e-3, 1e3), (-8, 8))),
    ("atan2", mp.atan2, two((-10, 10), (-10, 10))),
    ("hypot", mp.hypot, two((-1e5, 1e5), (-1e5, 1e5))),
    ("logaddexp", lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), two((-30, 30), (-30, 30))),
    ("logaddexp2", lambda a, b: mp.log(mpmath.power(2, a) + mpmath.power(2, b), 2), two((-30, 30), (-30, 30))),
    ("xlogy", lambda x, y: x * mp.log(y), two((-10, 10), (1e-5, 1e5))),
    ("special.xlog1py", lambda x, y: x * mp.log1p(y), two((-10, 10), (-0.9, 1e5))),
    ("special.zeta", mp.zeta, two((1.1, 20), (0.1, 20))),
    ("special.gammainc", lambda a, x: mp.gammainc(a, 0, x, True), two((0.1, 20), (0.1, 20))),
    ("special.gammaincc", lambda a, x: mp.gammainc(a, x, mp.inf, True), two((0.1, 20), (0.1, 20))),
]  # fmt: skip


def drawn(rng: np.random.Generator, within: Range, dtype: str) -> np.ndarray:
    """Numbers of a range, half of them even and half by magnitude."""
    low, high = within
    even = rng.uniform(low, high, COUNT // 2)
    span = max(abs(low), abs(high))
    magnitude = span * 10.0 ** rng.uniform(-8, 0, COUNT * 4)
    sign = rng.choice([-1.0, 1.0], magnitude.size)
    signed = magnitude * sign
    inside = signed[(signed >= low) & (signed <= high)][: COUNT - even.size]
    return (
        np.concatenate([even, inside])[:COUNT]
        .astype(dtype)
        .clip(np.dtype(dtype).type(low), np.dtype(dtype).type(high))
    )


def error(found: np.ndarray, exact: list[Any], dtype: str) -> float:
    """The largest error in units in the last place, of results that are normal numbers."""
    least = np.finfo(dtype).tiny
    worst = 0.0
    for y, e in zip(found, exact, strict=True):
        if not mp.isfinite(e) or abs(e) < least or abs(e) > np.finfo(dtype).max:
            continue
        unit = np.spacing(np.abs(np.dtype(dtype).type(float(e))))
        worst = max(
            worst, float(abs(mp.mpf(float(y)) - e) / mp.mpf(float(unit))) if np.isfinite(y) else np.inf
        )
    return worst


def value(library: Any, name: str, dtype: str, arguments: list[np.ndarray]) -> np.ndarray:
    function = library
    for part in name.split("."):
        function = getattr(function, part)
    before, after = INTEGERS.get(name, ((), ()))
    return function(*before, *(library.from_numpy(a) for a in arguments), *after).numpy()


def measure(
    name: str, exact: Exact, ranges: tuple[Range, ...], libraries: list[Any]
) -> dict[str, list[float]]:
    found = {}
    for dtype in LIMITS:
        rng = np.random.default_rng(17)
        arguments = [drawn(rng, within, dtype) for within in ranges]
        count = min(map(len, arguments))
        arguments = [rng.permutation(a)[:count] if i else a[:count] for i, a in enumerate(arguments)]
        values = [exact(*map(mp.mpf, map(float, each))) for each in zip(*arguments, strict=True)]
        found[dtype] = [error(value(lib, name, dtype, arguments), values, dtype) for lib in libraries]
    return found


def text(rows: list[tuple[str, dict[str, list[float]], tuple[Range, ...]]]) -> str:
    lines = [
        "# Errors of functions in units in the last place",
        "",
        "Written by `python benchmarks/ulps.py --write`: the largest error among several hundred numbers of each range",
        "(half even, half by magnitude), against mpmath with 140 bits. Limits: 4 in float32, 2 in float64;",
        "what is above is **marked**. Next to a zero of a function the last place means little: between two numbers of",
        "the dtype it stands behind the large numbers of PyTorch's Bessel functions, `digamma` and `airy_ai`.",
        "",
        "| function | range | float32 | PyTorch | float64 | PyTorch |",
        "|---|---|---|---|---|---|",
    ]
    for name, found, ranges in rows:
        span = ", ".join(f"{low:g} to {high:g}" for low, high in ranges)
        cells = []
        for dtype, limit in LIMITS.items():
            ours, theirs = found[dtype]
            cells += [f"**{ours:.3g}**" if ours > limit else f"{ours:.3g}", f"{theirs:.3g}"]
        lines.append(f"| `{name}` | {span} | {' | '.join(cells)} |")
    inside = {d: sum(found[d][0] <= limit for _, found, _ in rows) for d, limit in LIMITS.items()}
    lines += [
        "",
        f"Within the limits: {inside['float32']} of {len(rows)} in float32, {inside['float64']} in float64.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only these functions")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/ulps.md")
    options = parser.parse_args()
    libraries = [importlib.import_module(name) for name in ("taeda", "torch")]
    rows = []
    for name, exact, ranges in ROWS:
        if options.names and name not in options.names and name.rpartition(".")[2] not in options.names:
            continue
        found = measure(name, exact, ranges, libraries)
        rows.append((name, found, ranges))
        print(name, *(f"{d} {a:.3g} (PyTorch {b:.3g})" for d, (a, b) in found.items()), flush=True)
    if options.write:
        PAGE.write_text(text(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
