"""Settings of vendors' libraries, under the names by which programs make and ask them.

A setting is kept and given back; operators of this package read none of them, as the doc text of each module says.
Questions (`is_available`, `version`) have true answers.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from taeda_tensor_core import _C, _plugins
from taeda_tensor_core._build_facts import get_library_dir

__all__ = ["DEVICE_INDEPENDENT", "device_settings", "disable_global_flags", "flags_frozen", "settings"]

_frozen = False


def disable_global_flags() -> None:
    """Refuse from now on that settings are assigned; blocks of ``flags`` still make them."""
    global _frozen
    _frozen = True


def flags_frozen() -> bool:
    """Whether `disable_global_flags` was called."""
    return _frozen


#: Settings that programs still make after `disable_global_flags`.
_NEVER_FROZEN = frozenset({("taeda.backends.quantized", "engine")})


class SDPAParams(NamedTuple):
    """The arguments of an attention, about which programs ask which kernels could compute it."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


class Settings(ModuleType):
    """Settings by name, with questions beside them.

    Args:
        name: Of the module.
        doc: What they are for, and that nothing reads them.
        values: The settings as they are at first.
        answers: Functions.
    """

    def __init__(self, name: str, doc: str, values: dict[str, Any], answers: dict[str, Callable]) -> None:
        super().__init__(f"taeda.backends.{name}", doc)
        self.__dict__.update(values)
        self.__dict__.update(answers)
        self.__dict__["_values"] = tuple(values)
        self.__dict__["_told"] = None

    def __reduce__(self) -> Any:  # what pickles functions (cloudpickle) knows the class of modules alone
        return import_module, (self.__name__,)

    def follow(self, told: Callable[[str, Any], None]) -> None:
        """Have a device's library told of each setting that is made from now on, by its name and value."""
        self.__dict__["_told"] = told

    def __setattr__(self, name: str, value: Any) -> None:
        if _frozen and name in self.__dict__["_values"] and (self.__name__, name) not in _NEVER_FROZEN:
            raise RuntimeError(
                f"{self.__name__}.{name}: not allowed to set it after disable_global_flags; expected a block of flags()"
            )
        self._make(name, value)

    def _make(self, name: str, value: Any) -> None:
        told = self.__dict__["_told"]
        if told is not None and name in self.__dict__["_values"]:
            told(name, value)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name == "SDPBackend":  # the nn slot's, which programs take from here too
            from taeda_registry.resolution import resolve

            return resolve("nn").attention.SDPBackend
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def set_flags(self, **changes: Any) -> tuple[Any, ...]:
        """Make settings, those that are not None; what they were before."""
        known = self.__dict__["_values"]
        for name in changes:
            if name.lstrip("_") not in known:
                raise TypeError(
                    f"{self.__name__}.flags: unknown setting {name!r}; expected {', '.join(known)}"
                )
        before = tuple(getattr(self, name) for name in known)
        for name, value in changes.items():
            if value is not None:
                self._make(name.lstrip("_"), value)
        return before

    @contextlib.contextmanager
    def flags(self, **changes: Any) -> Iterator[None]:
        """A block with other settings."""
        before = self.set_flags(**changes)
        try:
            yield
        finally:
            self.set_flags(**dict(zip(self.__dict__["_values"], before, strict=True)))


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


_no, _none = _constant(False), _constant(None)


class _Verbose:
    """A block in which a library would print what it does; ours print nothing.

    Args:
        enable: Accepted.
    """

    def __init__(self, enable: int) -> None:
        self.enable = self.level = enable

    def __enter__(self) -> _Verbose:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _has_library(stem: str) -> bool:
    folder = get_library_dir()
    return os.path.isdir(folder) and any(name.startswith(stem) for name in os.listdir(folder))


def _has_opt_einsum() -> bool:
    """Whether the package opt_einsum is installed."""
    from importlib.util import find_spec

    return find_spec("opt_einsum") is not None


def _opt_einsum() -> Any:
    """The package opt_einsum; None without it."""
    if not _has_opt_einsum():
        return None
    from importlib import import_module

    return import_module("opt_einsum")


def _capability() -> str:
    """The best vector instructions of the processor that there are loops for, in PyTorch's words.

    ``TAEDA_ISA`` lowers it.
    """
    names = {"base": "DEFAULT", "avx2": "AVX2", "avx512": "AVX512"}
    order = list(names)
    wanted = os.environ.get("TAEDA_ISA", "avx512")
    limit = order.index(wanted) if wanted in order else len(order) - 1
    return names[order[min(limit, order.index(_machine()))]]


def _machine() -> str:
    from taeda_tensor_core._processor import system_flags

    flags = system_flags()
    if not {"avx2", "fma", "bmi1", "bmi2", "f16c"} <= flags:
        return "base"
    return "avx512" if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags else "avx2"


_fastpath = {"enabled": True}


def _set_fastpath(value: bool) -> None:
    """Kept and given back."""
    _fastpath["enabled"] = value


_UNREAD = "nothing reads them"
_MODULES: dict[str, tuple[str, dict[str, Any], dict[str, Callable]]] = {
    "cpu": ("The processor.", {}, {"get_cpu_capability": _capability}),
    "cudnn": (
        "Settings of a vendor's library of layers, which a plug-in of devices may follow; the cpu does not use it.",
        {
            "enabled": True, "benchmark": False, "benchmark_limit": 10, "deterministic": False, "allow_tf32": True,
            "fp32_precision": "none", "depthwise_enabled": True,
        },
        {"is_available": _no, "version": _none, "is_acceptable": _no},
    ),
    "mkldnn": (
        f"oneDNN, which computes convolutions, matrix products and more; its settings are fixed: {_UNREAD}.",
        {"enabled": True, "deterministic": False, "allow_tf32": False, "fp32_precision": "none"},
        {"is_available": lambda: _has_library("libdnnl"), "is_acl_available": _no, "verbose": _Verbose},
    ),
    "mkl": ("A vendor's BLAS, which is not used: OpenBLAS is.", {}, {"is_available": _no, "verbose": _Verbose}),
    "openmp": ("Threads of operators.", {}, {"is_available": _constant(True)}),
    "nnpack": (f"A library that is not used: {_UNREAD}.", {"enabled": False}, {"is_available": _no}),
    "xnnpack": ("A library that is not used.", {"enabled": False}, {}),
    "kleidiai": ("A library that is not used.", {}, {"is_available": _no}),
    "miopen": (f"A library that is not used: {_UNREAD}.", {"immediate": False}, {}),

    "cusparselt": ("A library that is not used.", {}, {"is_available": _no, "version": _none, "get_max_alg_id": _none}),
    "mha": (
        "The fast path of attention layers; it is kept, and nothing reads it.",
        {},
        {"get_fastpath_enabled": lambda: _fastpath["enabled"], "set_fastpath_enabled": _set_fastpath},
    ),
    "quantized": (
        "Names of engines of quantized operators, all of which compute alike here; programs choose scales by them.",
        {"engine": "x86", "supported_engines": ["qnnpack", "onednn", "x86", "fbgemm"]},
        {},
    ),
    "opt_einsum": (
        "The package that orders contractions of einsum.",
        {"enabled": True, "strategy": "auto"},
        {"is_available": _has_opt_einsum, "get_opt_einsum": _opt_einsum},
    ),
}  # fmt: skip
DEVICE_INDEPENDENT = frozenset(_MODULES)
_VERBOSE = {
    "mkldnn": {"VERBOSE_OFF": 0, "VERBOSE_ON": 1, "VERBOSE_ON_CREATION": 2},
    "mkl": {"VERBOSE_OFF": 0, "VERBOSE_ON": 1},
}

# Kinds of operators whose precision programs set apart.
_PARTS = {
    "cudnn": dict.fromkeys(("conv", "rnn"), "tf32"),
    "mkldnn": dict.fromkeys(("conv", "matmul", "rnn"), "none"),
}

_made: dict[str, Settings] = {}


def settings(name: str) -> Settings:
    """The module of one library.

    A kind of device may follow it: `library_settings` of the module of its names has, by the library's name, what is
    told of each setting, and answers in place of those here.
    """
    if name not in _made:
        made = _made[name] = Settings(name, *_MODULES[name])
        made.__dict__.update(_VERBOSE.get(name, {}))
        for kind in _C._reserved_devices():
            followed = getattr(_plugins.names_of(kind), "library_settings", {})
            if name in followed:
                told, answers = followed[name]
                made.follow(told)
                made.__dict__.update(answers)
        for part, precision in _PARTS.get(name, {}).items():
            text = f"Settings of some operators: {_UNREAD}."
            made.__dict__[part] = Settings(f"{name}.{part}", text, {"fp32_precision": precision}, {})
    return _made[name]


# --- kinds of devices ---

#: Ways of attention that programs allow and forbid.
_ATTENTION = ("flash", "mem_efficient", "math", "cudnn")


def _device_answers(kind: str) -> dict[str, Any]:
    from taeda_tensor_core.device_module import get_device_module

    allowed = dict.fromkeys((*_ATTENTION, "fp16_bf16_reduction_math"), True)
    preferred = {"linalg": "default", "blas": "default"}

    def enable(way: str) -> Callable[[bool], None]:
        def switch(enabled: bool) -> None:
            allowed[way] = enabled

        return switch

    def prefer(what: str) -> Callable[[str | None], str]:
        def choose(backend: str | None = None) -> str:
            preferred[what] = preferred[what] if backend is None else backend
            return preferred[what]

        return choose

    @contextlib.contextmanager
    def sdp_kernel(
        enable_flash: bool = True,
        enable_math: bool = True,
        enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> Iterator[None]:
        before = dict(allowed)
        allowed.update(
            flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
        )
        try:
            yield
        finally:
            allowed.update(before)

    answers: dict[str, Any] = {
        "is_built": lambda: get_device_module(kind).is_available(),
        "is_available": lambda: get_device_module(kind).is_available(),
        "is_macos_or_newer": _no,
        "is_macos13_or_newer": _no,
        "is_flash_attention_available": _no,
        "SDPAParams": SDPAParams,
        "can_use_flash_attention": _no,
        "can_use_efficient_attention": _no,
        "can_use_cudnn_attention": _no,
        "preferred_linalg_library": prefer("linalg"),
        "preferred_blas_library": prefer("blas"),
        "sdp_kernel": sdp_kernel,
        "allow_fp16_bf16_reduction_math_sdp": enable("fp16_bf16_reduction_math"),
        "fp16_bf16_reduction_math_sdp_allowed": lambda: allowed["fp16_bf16_reduction_math"],
    }
    for way in _ATTENTION:
        answers[f"enable_{way}_sdp"] = enable(way)
        answers[f"{way}_sdp_enabled"] = lambda way=way: allowed[way]
    return answers


def device_settings(kind: str) -> Settings:
    """The module of a kind of device: settings of its matrix products and attention.

    Nothing reads them but those of products that the module of the device's names (`_plugins.names_of`) offers.
    """
    if kind not in _made:
        values = {
            "matmul": SimpleNamespace(
                allow_tf32=False, allow_fp16_reduced_precision_reduction=True,
                allow_bf16_reduced_precision_reduction=True, allow_fp16_accumulation=False, fp32_precision="none",
            ),
            "cufft_plan_cache": SimpleNamespace(size=0, max_size=0, clear=lambda: None),
        }  # fmt: skip
        own = _plugins.names_of(kind)
        for name, found in (("matmul", "matmul_settings"), ("cufft_plan_cache", "cufft_plan_cache")):
            if own is not None and hasattr(own, found):
                values[name] = getattr(own, found)
        doc = f"Settings for devices of the kind {kind!r}; {_UNREAD}."
        _made[kind] = Settings(kind, doc, values, _device_answers(kind))
    return _made[kind]
