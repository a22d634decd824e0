"""Modules inside of PyTorch's packages, whose names stand in a package here: programs import them by either way."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

from taeda import _compiler_names
from taeda._reachable import reach

_INTRINSIC = {
    "": "modules modules.fused",
    ".qat": "modules modules.conv_fused modules.linear_relu",
    ".quantized": "dynamic dynamic.modules dynamic.modules.linear_relu modules modules.bn_relu modules.conv_relu "
    "modules.linear_relu",
}
_QUANTIZED = {
    "": "modules modules.activation modules.batchnorm modules.conv modules.dropout modules.embedding_ops "
    "modules.functional_modules modules.linear modules.normalization modules.rnn",
    ".dynamic": "modules modules.linear modules.rnn",
}
_QAT = (
    "dynamic dynamic.modules dynamic.modules.linear modules modules.conv modules.embedding_ops modules.linear"
)
#: By the package that has the names: the modules inside of it.
_INSIDE = {
    "_logging": "_internal",
    "accelerator": "graphs memory",
    **{f"{start}nn.intrinsic{part}": inner for start in ("ao.", "") for part, inner in _INTRINSIC.items()},
    **{f"{start}nn.quantized{part}": inner for start in ("ao.", "") for part, inner in _QUANTIZED.items()},
    **{f"{start}nn.quantizable": "modules modules.activation modules.rnn" for start in ("ao.", "")},
    **{f"{start}nn.qat": _QAT for start in ("ao.", "")},
    "ao.quantization.backend_config": "backend_config executorch fbgemm native onednn qnnpack tensorrt x86",
    "cuda": "sparse",
    "export": "dynamic_shapes unflatten",
    "jit": "_async _freeze _fuser _script _serialization _trace",
    "masked": "_ops maskedtensor maskedtensor.binary maskedtensor.core maskedtensor.creation maskedtensor.reductions",
    "mps": "event",
    "multiprocessing": "queue spawn",
    "onnx": "utils",
    "optim": "_multi_tensor",
    "package": "file_structure_representation glob_group importer package_exporter package_importer",
    "profiler": "profiler",
    "signal.windows": "windows",
    "utils.benchmark": "utils utils.common utils.compare utils.fuzzer utils.sparse_fuzzer utils.timer",
    "utils._debug_mode": "_calls _mode _utils",
    "utils.data.datapipes.iter": "callable combinatorics combining filelister fileopener grouping selecting sharding "
    "streamreader utils",
    "utils.data.datapipes.map": "callable combinatorics combining grouping utils",
}  # fmt: skip
_HOMES = {
    f"taeda.{home}.{name}": f"taeda.{home}" for home, inner in _INSIDE.items() for name in inner.split()
}
_HOMES |= {
    f"taeda.quantization.{name}": f"taeda.ao.quantization.{name}"
    for name in (
        "fake_quantize", "fuse_modules", "observer", "qconfig", "quantization_mappings", "quantize", "quantize_fx",
        "quant_type", "stubs", "utils",
    )
}  # fmt: skip
_HOMES |= {
    f"taeda.ao.quantization.fx.{name}": f"taeda.ao.quantization.{home}"
    for name, home in {"_decomposed": "_decomposed", "custom_config": "_custom_config"}.items()
}
# Modules of their own: importing one below another makes it an attribute, which would hide a function of that name.
_HOMES |= dict.fromkeys(
    ("taeda._library", "taeda._library.custom_ops", "taeda._library.infer_schema"), "taeda.library"
)


def has(name: str) -> bool:
    """Whether it is one of these modules."""
    return name in _HOMES or _compiler_names.has(name)


def inside(home: str) -> list[str]:
    """The modules inside of a package."""
    return _INSIDE.get(home.removeprefix("taeda."), "").split()


class _Inner(ModuleType):
    """A module that has the names of its home, which is looked for when one is asked for."""

    def __init__(self, name: str, home: str) -> None:
        super().__init__(name, f"The names of `{home}`.")
        self._home = home
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        from importlib import import_module

        home = import_module(self._home)
        if name == "__all__":
            return list(getattr(home, "__all__", None) or [n for n in dir(home) if not n.startswith("_")])
        try:
            return getattr(home, name)
        except AttributeError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def __dir__(self) -> list[str]:
        return list(self.__all__)


@cache
def make(name: str) -> ModuleType:
    """The module of that name."""
    made = _Inner(name, _HOMES[name]) if name in _HOMES else _compiler_names.make(name)
    reach(made, name.partition(".")[2])
    return made
