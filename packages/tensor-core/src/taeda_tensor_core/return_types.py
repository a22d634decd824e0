"""The classes of results that have several named parts, such as ``taeda.return_types.max``."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, ops

# How a class comes to light: the operator's smallest call.
_CALLS: dict[str, tuple[str, tuple]] = {
    name: (name, (0,)) for name in ("cummax", "cummin", "max", "median", "min", "mode", "nanmedian", "sort")
}
_CALLS |= {
    "kthvalue": ("kthvalue", (1, 0)),
    "topk": ("topk", (1,)),
    "aminmax": ("aminmax", ()),
    "frexp": ("frexp", ()),
}
_MATRIX = {
    "slogdet": ("slogdet", ()), "svd": ("svd", ()), "qr": ("qr", ()), "geqrf": ("geqrf", ()),
    "linalg_slogdet": ("linalg_slogdet", ()),
    "linalg_svd": ("linalg_svd", ()), "linalg_qr": ("linalg_qr", ()), "linalg_eig": ("linalg_eig", ()),
    "linalg_eigh": ("linalg_eigh", ()),
    "linalg_lu": ("linalg_lu", ()), "linalg_lu_factor": ("linalg_lu_factor", ()),
    "linalg_lu_factor_ex": ("linalg_lu_factor_ex", ()),
    "linalg_cholesky_ex": ("linalg_cholesky_ex", ()), "linalg_inv_ex": ("linalg_inv_ex", ()),
    "linalg_ldl_factor": ("linalg_ldl_factor", ()),
    "linalg_ldl_factor_ex": ("linalg_ldl_factor_ex", ()),
}  # fmt: skip


def _operator(name: str) -> Any:
    family, _, rest = name.partition("_")
    home = getattr(_C, family, None) if rest else None
    found = getattr(home, rest, None) if home is not None else None
    return found or getattr(_C, name, None) or getattr(ops, name, None)


def __getattr__(name: str) -> type:
    calls = _CALLS if name in _CALLS else _MATRIX
    function = _operator(calls[name][0]) if name in calls else None
    if function is None:
        raise AttributeError(f"module 'taeda.return_types' has no attribute {name!r}")
    example = _C.ones((1,) if calls is _CALLS else (1, 1))
    return globals().setdefault(name, type(function(example, *calls[name][1])))


def __dir__() -> list[str]:
    return sorted(name for name in (*_CALLS, *_MATRIX) if _operator(name) is not None)
