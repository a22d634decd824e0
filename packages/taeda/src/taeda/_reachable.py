"""Modules that programs reach as attributes without importing them, as in PyTorch, which has imported them itself."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

#: By path below taeda: names of the modules, which are imported when they are asked for.
_CHILDREN = {
    "_C": "_distributed_c10d _distributed_rpc _profiler",
    "_custom_op": "autograd impl",
    "_dispatch": "python",
    "_functorch": "autograd_function batch_norm_replacement predispatch pyfunctorch utils",
    "_higher_order_ops": "auto_functionalize effects torchbind utils wrap",
    "_library":
    "autograd custom_ops effects fake_class_registry fake_impl fake_profile opaque_object simple_registry "
    "triton utils",
    "_logging": "_internal _registrations structured",
    "_subclasses": "_fake_tensor_utils fake_utils functional_tensor meta_utils",
    "ao.nn": "quantizable sparse",
    "ao.nn.intrinsic": "modules",
    "ao.nn.intrinsic.modules": "fused",
    "ao.nn.intrinsic.qat": "modules",
    "ao.nn.intrinsic.qat.modules": "conv_fused linear_fused linear_relu",
    "ao.nn.intrinsic.quantized": "dynamic modules",
    "ao.nn.intrinsic.quantized.dynamic": "modules",
    "ao.nn.intrinsic.quantized.dynamic.modules": "linear_relu",
    "ao.nn.intrinsic.quantized.modules": "bn_relu conv_add conv_relu linear_relu",
    "ao.nn.qat": "dynamic modules",
    "ao.nn.qat.dynamic": "modules",
    "ao.nn.qat.dynamic.modules": "linear",
    "ao.nn.qat.modules": "conv embedding_ops linear",
    "ao.nn.quantizable": "modules",
    "ao.nn.quantizable.modules": "activation rnn",
    "ao.nn.quantized": "modules reference",
    "ao.nn.quantized.dynamic": "modules",
    "ao.nn.quantized.dynamic.modules": "conv linear rnn",
    "ao.nn.quantized.modules":
    "activation batchnorm conv dropout embedding_ops functional_modules linear normalization rnn utils",
    "ao.nn.quantized.reference": "modules",
    "ao.nn.quantized.reference.modules": "conv linear rnn sparse utils",
    "ao.nn.sparse": "quantized",
    "ao.nn.sparse.quantized": "dynamic linear utils",
    "ao.nn.sparse.quantized.dynamic": "linear",
    "ao.quantization": "fuser_method_mappings quant_type utils",
    "autograd": "profiler_legacy profiler_util",
    "backends": "python_native",
    "cuda": "gds green_contexts sparse",
    "cuda.amp": "common",
    "distributed": "config logging_handlers",
    "export": "_tree_utils custom_ops decomp_utils dynamic_shapes exported_program",
    "fx": "_lazy_graph_module _pytree _utils",
    "fx.experimental": "_backward_state _config const_fold proxy_tensor sym_node unification",
    "fx.experimental.unification": "core dispatch more multipledispatch unification_tools utils variable",
    "fx.experimental.unification.multipledispatch": "conflict core dispatcher utils variadic",
    "fx.passes": "net_min_base regional_inductor reinplace runtime_assert splitter_base",
    "fx.passes.infra": "pass_base pass_manager",
    "jit": "_async _check _freeze _fuser _monkeytype_config _recursive _script _serialization _state _trace frontend",
    "masked.maskedtensor": "binary core creation passthrough reductions unary",
    "mps": "event",
    "nested": "_internal",
    "nested._internal": "nested_tensor",
    "nn": "quantizable",
    "nn.intrinsic": "modules",
    "nn.intrinsic.modules": "fused",
    "nn.intrinsic.qat": "modules",
    "nn.intrinsic.qat.modules": "conv_fused linear_fused linear_relu",
    "nn.intrinsic.quantized": "dynamic modules",
    "nn.intrinsic.quantized.dynamic": "modules",
    "nn.intrinsic.quantized.dynamic.modules": "linear_relu",
    "nn.intrinsic.quantized.modules": "bn_relu conv_relu linear_relu",
    "nn.modules": "_functions",
    "nn.parallel": "_functions comm",
    "nn.qat": "dynamic modules",
    "nn.qat.dynamic": "modules",
    "nn.qat.dynamic.modules": "linear",
    "nn.qat.modules": "conv embedding_ops linear",
    "nn.quantizable": "modules",
    "nn.quantized": "modules",
    "nn.utils": "_named_member_accessor",
    "package":
    "_digraph _directory_reader _importlib _mangling _package_pickler _package_unpickler _stdlib analyze "
    "file_structure_representation find_file_dependencies glob_group importer package_exporter "
    "package_importer",
    "package.analyze": "is_from_package",
    "profiler": "_memory_profiler _utils itt profiler",
    "sparse": "_semi_structured_conversions _semi_structured_ops semi_structured",
    "testing": "_internal",
    "testing._internal": "common_cuda common_device_type common_dtype common_utils",
    "utils":
    "_config_module _content_store _dtype_abbrs _exposed_in _import_utils _inspect _mode_utils "
    "_ordered_set _stats _thunk _traceback throughput_benchmark",
    "utils._debug_mode": "_calls _mode _utils",
    "utils.data": "graph graph_settings",
    "utils.data.datapipes": "dataframe utils",
    "utils.data.datapipes.dataframe": "dataframe_wrapper dataframes datapipes structures",
    "utils.data.datapipes.iter":
    "callable combinatorics combining filelister fileopener grouping selecting sharding streamreader "
    "utils",
    "utils.data.datapipes.map": "callable combinatorics combining grouping utils",
    "utils.data.datapipes.utils": "common decoder",
}  # fmt: skip
#: Those paths and all that they lie below.
_ON_THE_WAY: set[str] = set()
for _path in _CHILDREN:
    while _path and _path not in _ON_THE_WAY:
        _ON_THE_WAY.add(_path)
        _path = _path.rpartition(".")[0]


def reach(module: ModuleType, path: str) -> None:
    """Let a module, and what it has already, answer for the modules below it.

    Args:
        module: What stands at taeda.`path`.
    """
    if path not in _ON_THE_WAY or "__reaching__" in vars(module):
        return
    own, of_class = vars(module).get("__getattr__"), getattr(type(module), "__getattr__", None)
    names = frozenset(_CHILDREN.get(path, "").split())

    def find(name: str) -> Any:
        if name in names:
            from importlib import import_module

            try:
                return import_module(f"taeda.{path}.{name}")
            except ModuleNotFoundError:
                pass
        if own is not None:
            return _reached(own(name), f"{path}.{name}")
        if of_class is not None:
            return _reached(of_class(module, name), f"{path}.{name}")
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    vars(module).update(__getattr__=find, __reaching__=True)
    for child, value in vars(module).copy().items():
        _reached(value, f"{path}.{child}")


def own_spec(name: str, path: Any) -> Any:
    """How a file of this package is loaded that something is to be reached in; None where nothing is."""
    if name.partition(".")[2] not in _ON_THE_WAY:
        return None
    from importlib.machinery import PathFinder

    found = PathFinder.find_spec(name, path)
    if found is not None and found.loader is not None:
        found.loader = LoadedThen(found.loader, _reach_from)
    return found


class LoadedThen:
    """Another loader, after whose work a function is called with the module."""

    def __init__(self, loader: Any, then: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: Any) -> Any:
        """As the loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load the file; the module knows its own loader alone."""
        module.__spec__.loader = module.__loader__ = self._loader  # type: ignore[union-attr]
        self._loader.exec_module(module)
        self._then(module)


def _reach_from(module: ModuleType) -> None:
    reach(module, module.__name__.partition(".")[2])


def _reached(value: Any, path: str) -> Any:
    from types import ModuleType

    if isinstance(value, ModuleType):
        reach(value, path)
    return value
