"""The classes of results that have several named parts, such as ``taeda.return_types.max``."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, _functions, ops

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
# Those of several operands, by a call of their own.
_OTHERS: dict[str, Any] = {
    "histogram": lambda one: _C.histogram(one[0], 1),
    "histogramdd": lambda one: _functions.histogramdd(one, [1]),
    "linalg_lstsq": lambda one: _C.linalg.lstsq(one, one),
    "linalg_solve_ex": lambda one: _C.linalg.solve_ex(one, one),
    "lu_unpack": lambda one: _C.lu_unpack(one, _C.ones((1,), dtype=_C.int32)),
    "triangular_solve": lambda one: _C.triangular_solve(one, one),
}
_WITH_OUT = frozenset({
    "aminmax", "cummax", "cummin", "frexp", "geqrf", "histogram", "kthvalue", "linalg_cholesky_ex", "linalg_eig",
    "linalg_eigh", "linalg_inv_ex", "linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_lstsq", "linalg_lu",
    "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_qr", "linalg_slogdet", "linalg_solve_ex", "linalg_svd",
    "lu_unpack", "max", "median", "min", "mode", "nanmedian", "qr", "slogdet", "sort", "svd", "topk",
    "triangular_solve",
})  # fmt: skip


def _operator(name: str) -> Any:
    family, _, rest = name.partition("_")
    home = getattr(_C, family, None) if rest else None
    found = getattr(home, rest, None) if home is not None else None
    return found or getattr(_C, name, None) or getattr(ops, name, None)


def pytree_register_structseq(cls: type) -> None:
    """Nothing: results of several parts are tuples, which `utils._pytree` takes apart."""


def _all() -> list[type]:
    return [__getattr__(name) for name in __dir__()]


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return _all()
    plain = name.removesuffix("_out")
    if plain != name and plain in _WITH_OUT:
        return globals().setdefault(name, globals().get(plain) or __getattr__(plain))
    if name in _OTHERS:
        return globals().setdefault(name, type(_OTHERS[name](_C.ones((1, 1)))))
    calls = _CALLS if name in _CALLS else _MATRIX
    function = _operator(calls[name][0]) if name in calls else None
    if function is None:
        raise AttributeError(f"module 'taeda.return_types' has no attribute {name!r}")
    example = _C.ones((1,) if calls is _CALLS else (1, 1))
    return globals().setdefault(name, type(function(example, *calls[name][1])))


def __dir__() -> list[str]:
    return sorted((*(name for name in (*_CALLS, *_MATRIX) if _operator(name) is not None), *_OTHERS))
