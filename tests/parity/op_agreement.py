"""When a result of taeda agrees with PyTorch's: structure, shape, dtype and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

import taeda

# Relative and absolute, by the dtype of a result.
TOLERANCE = {
    torch.float16: (2e-3, 1e-4), torch.bfloat16: (1.6e-2, 1e-4), torch.float32: (1e-5, 1e-5),
    torch.float64: (1e-7, 1e-9), torch.complex64: (1e-5, 1e-5), torch.complex128: (1e-7, 1e-9),
}  # fmt: skip
# PyTorch's own error may be this many times as large before ours counts.
SLACK = 2.0


class Differs(AssertionError):
    """A result that is not PyTorch's."""


def as_torch(value: Any) -> Any:
    """A result of taeda as one of PyTorch, with the same structure."""
    if isinstance(value, taeda.Tensor):
        value = dense(value.detach())
        if value.dtype == taeda.bfloat16:
            return torch.from_numpy(value.view(taeda.int16).numpy().copy()).view(torch.bfloat16)
        return torch.from_numpy(value.numpy().copy())
    if isinstance(value, (tuple, list)):
        return [as_torch(item) for item in value]
    if isinstance(value, taeda.dtype):
        return getattr(torch, str(value).rpartition(".")[2])
    return value


def dense(t: Any) -> Any:
    """The elements of a sparse tensor of either library, in memory one after the other."""
    return t if str(t.layout).endswith("strided") else t.to_dense()


def flat(value: Any) -> list[Any]:
    """Tensors and other values of a result, in order."""
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in flat(part)]
    return [value]


def wide(t: torch.Tensor) -> torch.Tensor:
    """The same numbers in the widest dtype of their kind."""
    t = t.detach()
    if t._is_zerotensor():
        t = t.clone()
    t = t.resolve_conj().resolve_neg()
    return t.to(torch.complex128) if t.is_complex() else t.to(torch.float64)


def describe(t: Any) -> str:
    return f"{str(t.dtype)[6:]}{list(t.shape)}" if isinstance(t, torch.Tensor) else repr(t)[:60]


def check(
    found: Any,
    expected: Any,
    references: Sequence[Callable[[], Any]] | None = None,
    *,
    values: bool = True,
    made: list[torch.dtype] | None = None,
) -> None:
    """`Differs` unless both results are alike.

    Args:
        found: taeda's result.
        expected: PyTorch's.
        references: Each gives the result more exactly; ours may be as far from one of them as PyTorch's own.
        values: Whether values count, or dtypes and shapes alone.
        made: The dtypes that the results were computed in, if they were cast.
    """
    a, b = flat(as_torch(found)), [dense(t) if isinstance(t, torch.Tensor) else t for t in flat(expected)]
    if len(a) != len(b):
        raise Differs(f"{len(a)} results, expected {len(b)}")
    exact: list[list[Any]] | None = None
    for i, (ours, theirs) in enumerate(zip(a, b, strict=True)):
        which = f"result {i}: " if len(a) > 1 else ""
        if not isinstance(theirs, torch.Tensor) or not isinstance(ours, torch.Tensor):
            check_value(ours, theirs, which)
            continue
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            raise Differs(f"{which}{describe(ours)}, expected {describe(theirs)}")
        if not values or not ours.numel():
            continue
        where = disagreement(ours, theirs, made[i] if made else theirs.dtype)
        if where is None:
            continue
        if exact is None:
            exact = [found for found in map(computed, references or ()) if len(found) == len(b)]
        if any(as_good(ours, theirs, found[i]) for found in exact):
            continue
        raise Differs(f"{which}{describe(ours)} {where}")


def computed(reference: Callable[[], Any]) -> list[Any]:
    """What a reference gives; nothing where it has no such sample."""
    try:
        return flat(reference())
    except Exception:  # PyTorch has no double form of it, or SciPy's function takes other arguments
        return []


def check_value(ours: Any, theirs: Any, which: str) -> None:
    """`Differs` unless two values that are not both tensors are alike."""
    if isinstance(theirs, torch.Tensor) or isinstance(ours, torch.Tensor):
        raise Differs(f"{which}{describe(ours)}, expected {describe(theirs)}")
    if isinstance(theirs, float) and isinstance(ours, float):
        same = (
            ours == theirs or abs(ours - theirs) <= 1e-5 * abs(theirs) or (ours != ours and theirs != theirs)
        )
    else:
        same = type(ours) is type(theirs) and ours == theirs
    if not same:
        raise Differs(f"{which}{describe(ours)}, expected {describe(theirs)}")


def bits(ours: torch.Tensor, theirs: torch.Tensor) -> str | None:
    """Where two tensors of exact numbers differ."""
    unequal = ours != theirs
    if not bool(unequal.any()):
        return None
    place = tuple(int(i) for i in unequal.nonzero()[0])
    return f"at {place}: {ours[place].item()}, expected {theirs[place].item()}"


def disagreement(ours: torch.Tensor, theirs: torch.Tensor, made: torch.dtype) -> str | None:
    """Where two tensors of one dtype and shape differ beyond the tolerance of the dtype they were computed in."""
    if theirs.dtype not in TOLERANCE:
        if theirs.dtype in (torch.uint16, torch.uint32, torch.uint64):
            ours, theirs = ours.view(SIGNED[ours.dtype]), theirs.contiguous().view(SIGNED[theirs.dtype])
        return bits(ours, theirs)
    rtol, atol = max(TOLERANCE[theirs.dtype], TOLERANCE.get(made, (0.0, 0.0)))
    a, b = wide(ours), wide(theirs)
    good = torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if a.is_complex():
        both = torch.view_as_real(a.contiguous()), torch.view_as_real(b.contiguous())
        good |= torch.isclose(*both, rtol=rtol, atol=atol, equal_nan=True).all(-1)
    if bool(good.all()):
        return None
    place = tuple(int(i) for i in (~good).nonzero()[0])
    return f"at {place}: {a[place].item():.8g}, expected {b[place].item():.8g}"


SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def as_good(ours: torch.Tensor, theirs: torch.Tensor, exact: Any) -> bool:
    """Whether our values are no further from the exact ones than PyTorch's are."""
    if theirs.dtype not in TOLERANCE or not isinstance(exact, torch.Tensor) or exact.shape != theirs.shape:
        return False
    rtol, atol = TOLERANCE[theirs.dtype]
    a, b, c = wide(ours), wide(theirs), wide(exact)
    if a.is_complex() != c.is_complex():
        return False
    finite = torch.isfinite(a) & torch.isfinite(b) & torch.isfinite(c)
    # Where something is infinite or NaN: as PyTorch, or as it would be exactly.
    rounded = wide(exact.to(theirs.dtype))
    same = torch.isclose(a, b, rtol, atol, equal_nan=True) | torch.isclose(
        a, rounded, rtol, atol, equal_nan=True
    )
    if not bool(same[~finite].all()):
        return False
    mine, other = (a - c)[finite].abs(), (b - c)[finite].abs()
    if not mine.numel():
        return True
    return bool((mine <= SLACK * other.max() + rtol * c[finite].abs() + atol).all())
