"""Functions that PyTorch has taken away: calling one names what stands in its place, as PyTorch does."""

from __future__ import annotations

from typing import Any, NoReturn

#: By the function: what programs call instead.
_INSTEAD = {
    "eig": "linalg.eig, or linalg.eigvals for the values alone; both give complex tensors",
    "lstsq": "linalg.lstsq, which takes the matrix first and gives a named tuple",
    "matrix_rank": "linalg.matrix_rank, whose argument 'hermitian' was called 'symmetric'",
    "solve": "linalg.solve, which takes the matrix first and gives no factorization; linalg.lu_factor does",
    "symeig": "linalg.eigh or linalg.eigvalsh, which read the lower triangle unless UPLO is 'U'",
}


def _removed(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{name}: this function was removed; use {_INSTEAD[name]}")

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"RuntimeError: removed; use {_INSTEAD[name]}."
    return function


FUNCTIONS = {name: _removed(name) for name in _INSTEAD}
globals().update(FUNCTIONS)
