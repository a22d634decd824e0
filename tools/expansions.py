"""Tables of special functions by pieces: `python tools/expansions.py` writes packages/tensor-core/src/scalar/tables.

Each piece is a polynomial through the function's values at Chebyshev's points of the piece, computed in 60 digits with
mpmath and then written in powers of the distance from the middle of the piece, or from a zero of the function nearby.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

FOLDER = Path(__file__).parents[1] / "packages" / "tensor-core" / "src" / "scalar" / "tables"
Function = Callable[[Any], Any]
mp.dps = 60


def halves(value: Any) -> tuple[float, float]:
    """A number as float64 and what that leaves out."""
    high = float(value)
    return high, float(value - mpf(high))


def powers(f: Function, low: Any, high: Any, terms: int) -> list[Any]:
    """Coefficients of the polynomial through f at Chebyshev's points of an interval, in powers of the argument."""
    points = [mp.cos(mp.pi * (2 * k + 1) / (2 * terms)) for k in range(terms)]
    points = [(low + high) / 2 + (high - low) / 2 * p for p in points]
    divided = [f(p) for p in points]
    for order in range(1, terms):
        for k in range(terms - 1, order - 1, -1):
            divided[k] = (divided[k] - divided[k - 1]) / (points[k] - points[k - order])
    sums = [mpf(0)] * terms
    for k in range(terms - 1, -1, -1):  # Newton's form, multiplied out
        for j in range(terms - 1, 0, -1):
            sums[j] = sums[j - 1] - points[k] * sums[j]
        sums[0] = divided[k] - points[k] * sums[0]
    return sums


def piece(f: Function, low: Any, high: Any, terms: int, zeros: list[Any], reach: Any) -> list[float]:
    """Center, offset, rest and coefficients, about a zero where one is within reach of the middle."""
    middle = (low + high) / 2
    near = [z for z in zeros if abs(z - middle) < reach]
    if not near:
        c = powers(lambda d: f(middle + d), low - middle, high - middle, terms)
        first, rest = halves(c[0])
        return [float(middle), 0.0, rest, first, *map(float, c[1:])]
    zero = min(near, key=lambda z: abs(z - middle))
    slope = mp.diff(f, zero)
    # The quotient by the distance, to which it does not come too near.
    quotient = lambda d: f(zero + d) / d if abs(d) > mpf(10) ** -25 else slope  # noqa: E731
    c = powers(quotient, min(low - zero, mpf(0)), max(high - zero, mpf(0)), terms - 1)
    first, rest = halves(c[0])
    return [*halves(zero), rest, 0.0, first, *map(float, c[1:])]


def table(
    f: Function, low: float, width: float, count: int, terms: int, zeros: Any = (), reach: float = 0
) -> list[list[float]]:
    edges = [mpf(low) + mpf(width) * k for k in range(count + 1)]
    return [piece(f, a, b, terms, list(zeros), mpf(reach)) for a, b in pairwise(edges)]


def numbers(values: list[float]) -> str:
    return ", ".join(map(repr, values))


def text(name: str, about: str, rows: list[list[float]]) -> str:
    lines = [f"// {about}", f"TAEDA_TABLE Expansion<{len(rows[0]) - 3}> {name}[{len(rows)}] = {{"]
    for row in rows:
        lines += [f"    {{{numbers(row[:3])},", f"     {{{numbers(row[3:])}}}}},"]
    return "\n".join([*lines, "};", ""])


def write(file: str, purpose: str, *tables: str) -> None:
    head = [
        f"// {purpose}",
        "// Written by tools/expansions.py.",
        "#pragma once",
        '#include "scalar/expansion.h"',
        "",
        "// clang-format off",
        "namespace taeda::loops::TAEDA_ISA {",
        "",
    ]
    tail = ["", "}  // namespace taeda::loops::TAEDA_ISA", "// clang-format on", ""]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{file}.h").write_text("\n".join(head) + "\n".join(tables) + "\n".join(tail), encoding="utf-8")


def error_tables() -> None:
    write(
        "error", "exp(x^2) erfc(x), and where the normal distribution has reached a probability.",
        text("kErfcx", "exp(x^2) erfc(x) for x from 0 to 10.",
             table(lambda x: mp.exp(x * x) * mp.erfc(x), 0, 0.5, 20, 16)),
        text("kNormalPoint", "-x for which exp(-r^2) of the distribution lies below x, for r from 1.5 to 27.5.",
             table(lambda r: -normal_point(mp.exp(-r * r)), 1.5, 0.5, 52, 17)),
        text("kErrorTail", "z^2 + log(erfc(z) / t) for z from 0 to 32 over u = 2.125 t - 1.125, t = 1 / (1 + z / 2).",
             table(tail_exponent, -1, 2, 1, 26)),
        text("kErrorInverse", "erfinv(x) / x for |x| <= 0.85 over t = x^2 * 2 / 0.7225 - 1.",
             table(inverse_slope, -1, 2, 1, 34)),
    )  # fmt: skip


def tail_exponent(u: Any) -> Any:
    t = (u + mpf("1.125")) / mpf("2.125")
    z = 2 / t - 2
    return z * z + mp.log(mp.erfc(z) / t)


def inverse_slope(t: Any) -> Any:
    x = mp.sqrt((t + 1) * mpf("0.36125"))
    return mp.erfinv(x) / x


def normal_point(p: Any) -> Any:
    """x with ndtr(x) = p, by Newton's method on the logarithm, for p < 1/2."""
    x = -mp.sqrt(-2 * mp.log(p)) if p < mpf("0.05") else -mpf(1)
    for _ in range(100):
        q = mp.erfc(-x / mp.sqrt(2)) / 2
        step = (mp.log(q) - mp.log(p)) * q / (mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi))
        x -= step
        if abs(step) < mpf(10) ** -50 * abs(x):
            return x
    raise ArithmeticError(p)


def modified_tables() -> None:
    def scaled_i(order: int) -> Function:
        return lambda x: mp.besseli(order, x) * mp.exp(-x) / (x if order else 1)

    def scaled_k(order: int) -> Function:
        return lambda t: mp.besselk(order, 1 / t) * mp.exp(1 / t) / mp.sqrt(t)

    def far_i(order: int) -> Function:
        return lambda t: mp.besseli(order, 8 / t) * mp.exp(-8 / t) * mp.sqrt(8 / t)

    write(
        "modified", "Modified Bessel functions.",
        text("kI0Near", "exp(-x) I_0(x) for x from 0 to 8.", table(scaled_i(0), 0, 0.5, 16, 13)),
        text("kI1Near", "exp(-x) I_1(x) / x for x from 0 to 8.", table(scaled_i(1), 0, 0.5, 16, 13)),
        text("kI0Far", "sqrt(x) exp(-x) I_0(x) over 8 / x.", table(far_i(0), 0, 0.125, 8, 14)),
        text("kI1Far", "sqrt(x) exp(-x) I_1(x) over 8 / x.", table(far_i(1), 0, 0.125, 8, 14)),
        text("kK0", "sqrt(x) exp(x) K_0(x) over 1 / x, for x from 1/2.", table(scaled_k(0), 0, 0.125, 16, 14)),
        text("kK1", "sqrt(x) exp(x) K_1(x) over 1 / x, for x from 1/2.", table(scaled_k(1), 0, 0.125, 16, 14)),
    )  # fmt: skip


def bessel_tables() -> None:
    for kind, order in (("j", 0), ("j", 1), ("y", 0), ("y", 1)):
        f = partial(mp.besselj if kind == "j" else mp.bessely, order)
        find = mp.besseljzero if kind == "j" else mp.besselyzero
        zeros = [find(order, k) for k in range(1, 22)]
        name = f"{kind.upper()}{order}"
        near = [] if kind == "j" else [
            text(f"k{name}Near", f"{name[0]}_{order}(x) for x from 1/2 to 2.",
                 table(f, 0.5, 0.125, 12, 17, zeros, 0.3))]  # fmt: skip
        start = 0 if kind == "j" else 2
        if name == "J1":
            zeros = [mpf(0), *zeros]
        write(
            f"bessel_{kind}{order}", f"Bessel's function {name[0]}_{order}.", *near,
            text(f"k{name}", f"{name[0]}_{order}(x) for x from {start} to 64.",
                 table(f, start, 0.5, 128 - 2 * start, 15, zeros, 0.8)),
        )  # fmt: skip


def gamma_tables() -> None:
    zero = mp.findroot(mp.digamma, mpf("1.4616321449683623"))
    cotangent = lambda r: mp.pi * mp.cot(mp.pi * r) - 1 / r if abs(r) > mpf(10) ** -25 else mpf(0)  # noqa: E731
    write(
        "gamma", "Digamma, the gamma function's inverse and a cotangent.",
        text("kDigammaZero", "digamma(x) for x from 1 to 2.", table(mp.digamma, 1, 1, 1, 28, [zero], 1)),
        text("kDigamma", "digamma(x) for x from 2 to 10.", table(mp.digamma, 2, 0.5, 16, 14)),
        text("kCotangent", "pi cot(pi x) - 1 / x for x from 0 to 1/2.",
             table(cotangent, 0, 1 / 16, 8, 14, [mpf(0)], 0.04)),
        text("kInverseGamma", "1 / gamma(x) for x from 1 to 2.", table(mp.rgamma, 1, 1 / 16, 16, 11)),
    )  # fmt: skip


def uniform_gamma_table() -> None:
    """Of Temme's expansion for large a: NIST DLMF 8.12, the recurrences follow from 8.12.8 to 8.12.12."""
    orders, terms = 14, 26
    first = terms + 2 * orders + 2
    alpha, inverse = [mpf(0), mpf(1)], [mpf(1)]
    for m in range(3, first + 3):  # lambda - 1 is the sum of alpha_n eta^n
        crossed = sum((alpha[i] * alpha[m - i] for i in range(2, m - 1)), mpf(0))
        alpha.append((2 * alpha[m - 2] / m - crossed) / 2)
    for n in range(1, first + 1):
        inverse.append(-sum((alpha[i + 1] * inverse[n - i] for i in range(1, n + 1)), mpf(0)))
    row, rows = inverse[1:], []
    for _ in range(orders):
        rows.append(f"    {{{numbers([float(c) for c in row[:terms]])}}},")
        row = [(n + 2) * row[n + 2] - row[1] * inverse[n + 1] for n in range(len(row) - 2)]
    head = [
        "// Of a row for each power of 1 / a, in powers of eta.",
        f"TAEDA_TABLE double kTemme[{orders}][{terms}] = {{",
    ]
    write(
        "temme",
        "Temme's uniform expansion of the incomplete gamma functions.",
        "\n".join([*head, *rows, "};", ""]),
    )


def airy_tables() -> None:
    def scaled(t: Any) -> Any:
        x = (3 / (2 * t)) ** (mpf(2) / 3)
        return 2 * mp.sqrt(mp.pi) * mp.sqrt(mp.sqrt(x)) * mp.exp(1 / t) * mp.airyai(x)

    zeros = [mp.airyaizero(k) for k in range(1, 16)]
    write(
        "airy", "Airy's function.",
        text("kAiry", "Ai(x) for x from -16 to 2.", table(mp.airyai, -16, 0.25, 72, 15, zeros, 0.3)),
        text("kAiryFar", "2 sqrt(pi) x^(1/4) exp(z) Ai(x) over 1 / z, z = 2/3 x^(3/2), for x from 2.",
             table(scaled, 0, 1 / 16, 9, 16)),
    )  # fmt: skip


Series = list[Fraction]


def times(a: Series, b: Series) -> Series:
    return [sum((a[j] * b[k - j] for j in range(k + 1)), Fraction(0)) for k in range(len(a))]


def phase_and_square(p: Series, q: Series) -> tuple[Series, Series]:
    """Of P + i Q, power series in w = 1 / x: the angle over w and the square of the size, both in w^2."""
    slope = lambda c: [k * c[k] for k in range(1, len(c))]  # noqa: E731
    square = [a + b for a, b in zip(times(p, p), times(q, q), strict=True)]
    above = [
        a - b
        for a, b in zip(times(p, [*slope(q), Fraction(0)]), times(q, [*slope(p), Fraction(0)]), strict=True)
    ]
    rate: Series = []
    for k in range(len(p) - 1):
        rate.append(above[k] - sum((rate[j] * square[k - j] for j in range(k)), Fraction(0)))
    return [c / (k + 1) for k, c in enumerate(rate)][::2], square[::2]


def phase_text(name: str, about: str, u: Series) -> str:
    """From the coefficients of the asymptotic series u[0] + u[1] i w - u[2] w^2 - ..."""
    signs = (1, 0, -1, 0)
    p = [c * signs[k % 4] for k, c in enumerate(u)]
    q = [c * signs[(k - 1) % 4] for k, c in enumerate(u)]
    angle, square = phase_and_square(p, q)
    exact = [halves(mpf(c.numerator) / c.denominator) for c in angle]
    return "\n".join([
        f"// {about}", f"TAEDA_TABLE Phase<{len(angle)}> {name} = {{",
        "    {" + ", ".join(f"{{{numbers(list(pair))}}}" for pair in exact) + "},",
        "    {" + numbers([float(c) for c in square[: len(angle)]]) + "}};", "",
    ])  # fmt: skip


def phase_tables() -> None:
    def bessel(order: int) -> Series:
        u = [Fraction(1)]
        for k in range(1, 26):
            u.append(u[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
        return u

    airy = [Fraction(1)]
    for k in range(1, 30):
        airy.append(airy[-1] * Fraction((6 * k - 5) * (6 * k - 3) * (6 * k - 1), 216 * k * (2 * k - 1)))
    write(
        "phase", "Phase and square of the size of oscillating functions far away, in powers of 1 / x^2.",
        phase_text("kPhase0", "Of J_0 and Y_0: what the phase has beyond x - pi/4, over x; the square over 2 / (pi x).",
                   bessel(0)),
        phase_text("kPhase1", "Of J_1 and Y_1, beyond x - 3 pi/4.", bessel(1)),
        phase_text("kPhaseAiry", "Of Ai(-x), over z = 2/3 x^(3/2): what z - pi/4 has more than the phase.", airy),
    )  # fmt: skip


def main() -> None:
    gammas = (gamma_tables, uniform_gamma_table)
    for make in (error_tables, modified_tables, bessel_tables, *gammas, airy_tables, phase_tables):
        make()


if __name__ == "__main__":
    main()
