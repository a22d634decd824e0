"""Sequences that fill a cube more evenly than random numbers do."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of a Sobol sequence in the unit cube, scrambled on wish. SciPy has its direction numbers.

    Args:
        dimension: Of the cube, up to 21201.
        scramble: Whether digits are changed at random, by a triangular matrix and a shift for each dimension.
        seed: Of the scrambling; by default it is drawn.

    Raises:
        ValueError: A dimension that is not offered. ImportError: SciPy is not installed.

    Sources: Sobol, "The distribution of points in a cube and the accurate evaluation of integrals", 1967; Joe and Kuo,
    "Constructing Sobol sequences with better two-dimensional projections", 2008, for the direction numbers; Owen,
    "Scrambling Sobol' and Niederreiter-Xing points", 1998.

    Example:
        >>> taeda.quasirandom.SobolEngine(dimension=2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = _directions(dimension, self.MAXBIT)
        self.shift = _C.zeros(dimension, dtype=_C.int64, device="cpu")
        if scramble:
            self._scramble()
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = _C.Generator(device="cpu")
            generator.manual_seed(self.seed)
        bits = self.MAXBIT
        weights = 2 ** _C.arange(bits - 1, -1, -1, device="cpu")  # the first digit counts a half
        drawn = _C.randint(0, 2, (self.dimension, bits), generator=generator, device="cpu")
        self.shift = (drawn * weights.flip(0)).sum(1)
        lower = _C.randint(0, 2, (self.dimension, bits, bits), generator=generator, device="cpu").tril(-1)
        lower = lower + _C.eye(bits, dtype=_C.int64, device="cpu")
        digits = (self.sobolstate.unsqueeze(-1) // weights) % 2
        mixed = _C.einsum("dij,dkj->dki", lower, digits) % 2
        self.sobolstate = (mixed * weights).sum(-1)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next `n` points.

        Args:
            n: How many. out: Where they are written. dtype: Of the points, the default dtype unless given.

        Returns: (n, dimension), from 0 to 1.

        Raises:
            ValueError: `n` is negative, or the sequence has no more points.
        """
        begin, end = self.num_generated, self.num_generated + n
        if n < 0 or end > 2**self.MAXBIT:
            raise ValueError(f"SobolEngine.draw: argument 'n' is {n}, expected 0 to {2**self.MAXBIT - begin}")
        numbers = _C.arange(begin, end, device="cpu")
        gray = numbers ^ (numbers >> 1)
        points = self.shift.expand(n, self.dimension).clone()
        for bit in range(max(end - 1, 0).bit_length()):  # digits of a number, not elements
            picked = ((gray >> bit) & 1).unsqueeze(1)
            points ^= picked * self.sobolstate[:, bit]
        self.num_generated = end
        made = (points.to(_C.float64) / 2**self.MAXBIT).to(dtype or _C.get_default_dtype())
        if out is None:
            return made
        return out.resize_(made.shape).copy_(made)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2**m points, after which a power of two has been drawn.

        Raises:
            ValueError: It would be no power of two.
        """
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Back to the first point."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out `n` points."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        parts += ["scramble=True"] if self.scramble else []
        parts += [f"seed={self.seed}"] if self.seed is not None else []
        return f"SobolEngine({', '.join(parts)})"


def _directions(dimension: int, bits: int) -> Tensor:
    """The direction numbers (dimension, bits)."""
    try:
        from scipy.stats.qmc import Sobol
    except ImportError as error:
        raise ImportError(
            "SobolEngine: the direction numbers come with SciPy; try: pip install scipy"
        ) from error
    # Point 2**j is the one before it with direction j changed, so each is found from the points of a sequence.
    found = Sobol(dimension, scramble=False, bits=bits)._sv
    return _C.from_numpy(found.astype("int64"))
