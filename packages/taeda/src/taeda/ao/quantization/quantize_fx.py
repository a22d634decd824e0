"""Quantizing models by their graphs: neither stand-ins nor lists of layers to be joined are needed.

`prepare_fx` traces a model symbolically, joins layers that follow each other, and puts observers at what goes into and
comes out of each part that will be quantized; `convert_fx` puts quantized parts in their places, and quantizes and
dequantizes where these begin and end.
"""

from __future__ import annotations

import copy
import operator
from typing import Any

import taeda
from taeda import fx
from taeda.ao.nn._copies import draw_unused
from taeda.ao.nn.intrinsic._fused import _FusedModule
from taeda.ao.nn.quantized import FloatFunctional, FXFloatFunctional
from taeda.ao.quantization import quantization_mappings as mappings
from taeda.ao.quantization._custom_config import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig
from taeda.ao.quantization.fake_quantize import FakeQuantizeBase
from taeda.ao.quantization.fuse_modules import _kinds, _short, fuse_known_modules
from taeda.ao.quantization.observer import ObserverBase
from taeda.ao.quantization.qconfig_mapping import QConfigMapping
from taeda.ao.quantization.quantize import _clean, _swapped
from taeda_registry.slots import nn, tensor

__all__ = ["convert_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]

_F = nn.functional
# Sequences of layers that are computed as one, the longest first.
_TOGETHER = (
    ("Conv", "BN", "ReLU"), ("ConvTranspose", "BN"), ("Conv", "BN"), ("Conv", "ReLU"), ("Linear", "BN"),
    ("Linear", "ReLU"), ("BN", "ReLU"),
)  # fmt: skip
_RELUS = frozenset({_F.relu, tensor.relu, "relu", "relu_"})
_SUMS = {operator.add: "add", tensor.add: "add", operator.iadd: "add", "add": "add", "add_": "add",
         operator.mul: "mul", tensor.mul: "mul", operator.imul: "mul", "mul": "mul", "mul_": "mul"}  # fmt: skip
_JOINS = frozenset({tensor.cat, tensor.concat})
# What has quantized results of a fixed scale.
_BOUNDED = frozenset({tensor.sigmoid, tensor.tanh, _F.sigmoid, _F.tanh})
_BOUNDED_NAMES = frozenset({"sigmoid", "sigmoid_", "tanh", "tanh_"})
_BOUNDED_LAYERS = (nn.Sigmoid, nn.Tanh)
# What gives the numbers that it is given, some of them, or numbers between them, and so keeps their scale.
_KEEPING = frozenset({
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "chunk", "clone", "contiguous", "detach", "dropout", "expand", "flatten", "getitem", "hardtanh", "interpolate",
    "max_pool1d", "max_pool2d", "max_pool3d", "mean", "permute", "relu", "relu6", "relu_", "repeat", "reshape", "split",
    "squeeze", "transpose", "unsqueeze", "view",
})  # fmt: skip
_SEVERAL = frozenset({"chunk", "split"})
_KEEPING_LAYERS = (
    nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d,
    nn.Dropout, nn.Flatten, nn.Hardtanh, nn.Identity, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.ReLU, nn.ReLU6,
    nn.Upsample,
)  # fmt: skip


class _QuantizationTracer(fx.Tracer):
    """A tracer that leaves some modules whole."""

    def __init__(self, names: Any, classes: Any) -> None:
        super().__init__()
        self._names, self._classes = frozenset(names), tuple(classes)

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        whole = module_qualified_name in self._names or isinstance(m, (*self._classes, _FusedModule))
        return whole or super().is_leaf_module(m, module_qualified_name)


def _traced(model: Any, custom: Any, kind: Any) -> fx.GraphModule:
    custom = kind.from_dict(custom or {}) if custom is None or isinstance(custom, dict) else custom
    if isinstance(model, fx.GraphModule):
        return copy.deepcopy(model)
    names = getattr(custom, "non_traceable_module_names", ())
    classes = getattr(custom, "non_traceable_module_classes", ())
    model = copy.deepcopy(model)
    for path, part in list(model.named_modules()):
        if type(part) is FloatFunctional:
            _put(model, path, FXFloatFunctional())
    graph = _QuantizationTracer(names, classes).trace(model)
    made = fx.GraphModule(model, graph)
    for name in custom.preserved_attributes:
        setattr(made, name, getattr(model, name))
    made.train(model.training)
    return made


# --- joining layers ---


def _layer(node: Any, modules: dict[str, Any]) -> Any:
    """The layer that a node stands for: its module, or one for a function that has no parameters."""
    if not isinstance(node, fx.Node):
        return None
    if node.op == "call_module":
        return modules.get(node.target)
    return nn.ReLU() if node.op.startswith("call_") and node.target in _RELUS else None


def _chain(node: Any, modules: dict[str, Any]) -> list[Any]:
    """The nodes before and with this one that are computed as one."""
    chain = [node]
    while len(chain) < 3:
        before = chain[0].args[0] if chain[0].args else None
        if _layer(before, modules) is None or len(before.users) > 1:
            break
        chain.insert(0, before)
    for length in (3, 2):
        some = chain[-length:]
        kinds = tuple(_short(kind) for kind in _kinds([_layer(item, modules) for item in some]))
        if len(some) == length and kinds in _TOGETHER and some[0].op == "call_module":
            return some
    return []


def _fuse(model: fx.GraphModule, is_qat: bool) -> None:
    modules = dict(model.named_modules(remove_duplicate=False))
    for node in reversed(list(model.graph.nodes)):
        if node.graph is not model.graph or _layer(node, modules) is None:
            continue
        chain = _chain(node, modules)
        layers = [_layer(item, modules) for item in chain]
        layers = [
            copy.copy(item) if isinstance(item, nn.ReLU) else item for item in layers
        ]  # it may be used again
        if not chain or not _can_fuse(layers, is_qat):
            continue
        for layer in layers[1:]:
            layer.training = layers[0].training
        made = fuse_known_modules(layers, is_qat)[0]
        _put(model, chain[0].target, made)
        modules[chain[0].target] = made
        node.replace_all_uses_with(chain[0])
        for item in reversed(chain[1:]):
            model.graph.erase_node(item)
    model.delete_all_unused_submodules()
    model.recompile()


def _can_fuse(layers: list[Any], is_qat: bool) -> bool:
    kinds = tuple(_short(kind) for kind in _kinds(layers))
    if kinds[0] == "ConvTranspose" and is_qat:
        return False
    dims = {name[-2:] for name in _kinds(layers) if name.endswith("d") and name != "BatchNorm1d"}
    return len(dims) <= 1 and (kinds[0] != "BN" or _kinds(layers)[0] != "BatchNorm1d")


def _put(model: Any, path: str, module: Any) -> None:
    home, _, name = path.rpartition(".")
    setattr(model.get_submodule(home), name, module)


def fuse_fx(model: Any, fuse_custom_config: Any = None, backend_config: Any = None) -> fx.GraphModule:
    """The model with layers that follow each other as one; in evaluation, normalizations become part of weights."""
    made = _traced(model, fuse_custom_config, FuseCustomConfig)
    _fuse(made, model.training)
    return made


def _name(node: Any) -> str:
    """The name of the function or method that a node calls."""
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def _operands(node: Any) -> tuple[Any, ...]:
    """What a sum or a joining computes with."""
    if node.target not in _JOINS:
        return tuple(node.args[:2])
    given = node.args[0] if node.args else node.kwargs.get("tensors")
    return tuple(given) if isinstance(given, (list, tuple)) else ()


# --- observing ---


def _mapping(given: Any) -> QConfigMapping:
    if isinstance(given, QConfigMapping):
        return given
    if isinstance(given, dict):
        return QConfigMapping.from_dict(given)
    raise AttributeError(
        f"prepare_fx: argument 'qconfig_mapping' must be a QConfigMapping, found {type(given).__name__}"
    )


def _is_dynamic(qconfig: Any) -> bool:
    if qconfig is None:
        return False
    made = qconfig.activation()
    return bool(getattr(made, "is_dynamic", False)) or getattr(made, "dtype", None) in (
        tensor.float16,
        tensor.float32,
    )


def _is_bounded(node: Any) -> bool:
    if node.op == "call_method":
        return node.target in _BOUNDED_NAMES
    return node.op == "call_function" and node.target in _BOUNDED


class _Observing:
    """Puts observers into a traced model."""

    def __init__(self, model: fx.GraphModule, mapping: QConfigMapping, is_qat: bool) -> None:
        self.model, self.mapping = model, mapping
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.static = mappings.get_default_static_quant_module_mappings()
        self.seen: dict[Any, Any] = {}
        self.parts: dict[Any, Any] = {}  # of what has several results, the observer of each
        self.count = 0
        self.is_qat = is_qat

    def run(self) -> None:
        for node in list(self.model.graph.nodes):
            if node.op == "call_module":
                self._module(node)
            elif node.op in ("call_function", "call_method"):
                self._function(node)
        self.model.graph.lint()
        self.model.recompile()

    def _module(self, node: Any) -> None:
        module = self.modules[node.target]
        qconfig = getattr(module, "qconfig", None)
        if isinstance(module, _KEEPING_LAYERS):
            self._keeping(node)
            return
        if qconfig is None or _is_dynamic(qconfig) or isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
            return
        if self._is_seen(node) if isinstance(module, _BOUNDED_LAYERS) else type(module) in self.static:
            self._arguments(node, qconfig)
            self._observe(node, qconfig)

    def _is_seen(self, node: Any) -> bool:
        """Whether a node's argument is observed."""
        return bool(node.args) and node.args[0] in self.seen.values()

    def _function(self, node: Any) -> None:
        name = _name(node)
        qconfig = self.mapping.of_function(node.target)
        sums = node.target in _SUMS and all(isinstance(item, fx.Node) for item in node.args[:2])
        known = sums or node.target in _JOINS or (_is_bounded(node) and self._is_seen(node))
        if qconfig is not None and not _is_dynamic(qconfig) and known:
            self._arguments(node, qconfig)
            users = list(node.users)
            relu = len(users) == 1 and self._is_relu(users[0]) and sums and _SUMS[node.target] == "add"
            self._observe(users[0] if relu else node, qconfig)
        elif name in _KEEPING and node not in self.seen:
            self._keeping(node)

    def _is_relu(self, node: Any) -> bool:
        return isinstance(_layer(node, self.modules), nn.ReLU)

    def _keeping(self, node: Any) -> None:
        """What keeps the scale of its argument is observed by the same observer; of several results, each."""
        source = node.args[0] if node.args else None
        if node in self.seen or not isinstance(source, fx.Node) or source not in self.seen.values():
            return
        observer = self.parts.get(source)
        if observer is None and source.op == "call_module":
            observer = self.modules[source.target]
        if observer is None:
            return
        if _name(node) in _SEVERAL:
            self.seen[node], self.parts[node] = node, observer
        else:
            self._add(node, observer)

    def _arguments(self, node: Any, qconfig: Any) -> None:
        for item in [x for x in _operands(node) if isinstance(x, fx.Node)]:
            if item in self.seen.values():
                continue
            self._observe(item, qconfig)

    def _observe(self, node: Any, qconfig: Any) -> None:
        if node in self.seen:
            return
        made = qconfig.activation()
        made.train(self.model.training)
        self._add(node, made)

    def _add(self, node: Any, observer: Any) -> None:
        name = f"activation_post_process_{self.count}"
        self.count += 1
        self.model.add_submodule(name, observer)
        self.modules[name] = observer
        with self.model.graph.inserting_after(node):
            observed = self.model.graph.call_module(name, (node,))
        node.replace_all_uses_with(observed, lambda user: user is not observed)
        self.seen[node] = observed


def _prepare(model: Any, qconfig_mapping: Any, custom: Any, is_qat: bool) -> fx.GraphModule:
    mapping = _mapping(qconfig_mapping)
    made = _traced(model, custom, PrepareCustomConfig)
    _fuse(made, is_qat)
    for name, module in made.named_modules():
        kind = type(module[0]) if isinstance(module, _FusedModule) else type(module)
        module.qconfig = mapping.of_module(name, kind) if name else None
    if is_qat:
        known, fused = mappings.get_default_qat_module_mappings(), None
        for name, module in list(made.named_modules()):
            if fused is not None and name.startswith(f"{fused}."):
                continue  # a part of one that is replaced
            fused = name if isinstance(module, _FusedModule) else None
            if (
                name
                and type(module) in known
                and module.qconfig is not None
                and not _is_dynamic(module.qconfig)
            ):
                _put(made, name, known[type(module)].from_float(module))
    _Observing(made, mapping, is_qat).run()
    made._is_qat = is_qat
    return made


def prepare_fx(
    model: Any,
    qconfig_mapping: Any,
    example_inputs: tuple[Any, ...] = (),
    prepare_custom_config: Any = None,
    _equalization_config: Any = None,
    backend_config: Any = None,
) -> fx.GraphModule:
    """A model whose parts are observed: what goes through it afterwards says how it will be quantized.

    Args:
        model: In evaluation mode; it must be one that `fx.symbolic_trace` takes. It stays as it is.
        qconfig_mapping: A `QConfigMapping`, or what its `to_dict` gives.
        example_inputs: Accepted; the graph does not depend on them.
        prepare_custom_config: A `PrepareCustomConfig`, or what its `to_dict` gives.

    Raises:
        AttributeError: Another kind of mapping.
        NotImplementedError: A dict that asks for what a `PrepareCustomConfig` does not offer.

    Example:
        >>> quantization = taeda.ao.quantization
        >>> model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
        >>> mapping = quantization.get_default_qconfig_mapping("x86")
        >>> observed = quantization.quantize_fx.prepare_fx(model, mapping, (taeda.randn(1, 4),))
        >>> _ = observed(taeda.randn(32, 4))
        >>> [type(part).__name__ for part in quantization.quantize_fx.convert_fx(observed).children()]
        ['LinearReLU', 'Linear']
    """
    return _prepare(model, qconfig_mapping, prepare_custom_config, False)


def prepare_qat_fx(
    model: Any,
    qconfig_mapping: Any,
    example_inputs: tuple[Any, ...] = (),
    prepare_custom_config: Any = None,
    backend_config: Any = None,
) -> fx.GraphModule:
    """As `prepare_fx`, for training: layers quantize and dequantize their weights and results.

    Raises:
        AssertionError: The model is in evaluation mode.
    """
    if not model.training:
        raise AssertionError("prepare_qat_fx only works on models in training mode")
    return _prepare(model, qconfig_mapping, prepare_custom_config, True)


# --- converting ---


class _Converting:
    """Puts quantized parts into an observed model."""

    def __init__(self, model: fx.GraphModule) -> None:
        self.model, self.graph = model, model.graph
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.quantized: set[Any] = set()
        self.plain: dict[Any, Any] = {}
        self.gone: set[Any] = set()

    def run(self) -> None:
        for node in list(self.graph.nodes):
            if node in self.gone:
                continue
            if node.op == "call_module" and isinstance(
                self.modules[node.target], (ObserverBase, FakeQuantizeBase)
            ):
                self._observed(node)
            elif node.op == "call_module":
                self._module(node)
            elif node.op in ("call_function", "call_method"):
                self._function(node)
            elif node.op == "output":
                self._dequantize(node)
        self.graph.lint()
        self.model.recompile()
        self.model.delete_all_unused_submodules()
        _clean(self.model)

    def _observer_of(self, node: Any) -> Any:
        """The observer of a node's result."""
        for user in node.users:
            if user.op == "call_module" and isinstance(
                self.modules[user.target], (ObserverBase, FakeQuantizeBase)
            ):
                return self.modules[user.target]
        return None

    def _observed(self, node: Any) -> None:
        source = node.args[0]
        if source in self.quantized:
            node.replace_all_uses_with(source)
            self.graph.erase_node(node)
            return
        observer = self.modules[node.target]
        user = next(iter(node.users), None)
        prefix = (
            f"{user.target.replace('.', '_')}_input" if user is not None and user.op == "call_module" else ""
        )
        with self.graph.inserting_before(node):
            scales = self._scale(observer, prefix)
            made = self.graph.call_function(tensor.quantize_per_tensor, (source, *scales, observer.dtype))
        node.replace_all_uses_with(made)
        self.graph.erase_node(node)
        self.quantized.add(made)

    def _scale(self, observer: Any, prefix: str) -> tuple[Any, Any]:
        """Nodes of the scale and the zero point that an observer has found: buffers, so that states hold them."""
        scale, zero_point = observer.calculate_qparams()
        return (
            self._buffer(f"{prefix}_scale", scale.reshape(()).to(taeda.float32)),
            self._buffer(f"{prefix}_zero_point", zero_point.reshape(()).to(taeda.int64)),
        )

    def _buffer(self, name: str, value: Any) -> Any:
        number = next(i for i in range(len(self.graph.nodes) + 1) if not hasattr(self.model, f"{name}_{i}"))
        self.model.register_buffer(f"{name}_{number}", value)
        return self.graph.get_attr(f"{name}_{number}")

    def _module(self, node: Any) -> None:
        module = self.modules[node.target]
        source = node.args[0] if node.args else None
        qconfig = getattr(module, "qconfig", None)
        if isinstance(module, (*_KEEPING_LAYERS, *_BOUNDED_LAYERS)) and source in self.quantized:
            self.quantized.add(node)
            return
        observer = self._observer_of(node)
        if _is_dynamic(qconfig):
            known = mappings.get_default_dynamic_quant_module_mappings()
            # The codes of rows of embeddings have scales that the configuration of products does not give.
            if type(module) in known and not isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
                _draw_as_made(module)
                _put(self.model, node.target, _swapped(module, known))
        elif source in self.quantized and observer is not None:
            module.add_module("activation_post_process", observer)
            _draw_as_made(module)
            made = _swapped(module, mappings.get_default_static_quant_module_mappings())
            if made is not module:
                _put(self.model, node.target, made)
                self.quantized.add(node)
                return
        self._dequantize(node)

    def _function(self, node: Any) -> None:
        name = _name(node)
        given = _operands(node)
        tensors = [item for item in given if isinstance(item, fx.Node)]
        ready = bool(tensors) and all(item in self.quantized for item in tensors)
        if ready and node.target in _SUMS and len(tensors) == 2:
            self._sum(node, _SUMS[node.target])
        elif ready and node.target in _JOINS and self._observer_of(node) is not None:
            dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", node.kwargs.get("axis", 0))
            self._requantized(node, "cat", (list(given), dim))
        elif node.args and node.args[0] in self.quantized and self._stays(node, name):
            if name not in ("size", "getattr"):
                self.quantized.add(node)
        elif name != "quantize_per_tensor":
            self._dequantize(node)

    @staticmethod
    def _stays(node: Any, name: str) -> bool:
        return name in _KEEPING or name in ("size", "getattr") or _is_bounded(node)

    def _sum(self, node: Any, name: str) -> None:
        users = list(node.users)
        if self._observer_of(node) is not None:
            self._requantized(node, name, node.args[:2])
        elif len(users) == 1 and isinstance(_layer(users[0], self.modules), nn.ReLU):
            relu = users[0]
            if self._observer_of(relu) is None:
                self._dequantize(node)
                return
            self._requantized(relu, f"{name}_relu", node.args[:2])
            self._erase(node)
        else:
            self._dequantize(node)

    def _requantized(self, node: Any, name: str, args: tuple[Any, ...]) -> None:
        with self.graph.inserting_before(node):
            scales = self._scale(self._observer_of(node), "")
            made = self.graph.call_function(getattr(taeda.ops.quantized, name), (*args, *scales))
        node.replace_all_uses_with(made)
        self.quantized.add(made)
        self._erase(node)

    def _erase(self, node: Any) -> None:
        if not node.users:
            self.graph.erase_node(node)
            self.gone.add(node)

    def _dequantize(self, node: Any) -> None:
        """Let a node that computes on numbers be given numbers."""

        def plain(item: Any) -> Any:
            if item not in self.quantized:
                return item
            if item not in self.plain:
                with self.graph.inserting_after(item):
                    self.plain[item] = self.graph.call_method("dequantize", (item,))
            return self.plain[item]

        node.args = fx.node.map_arg(node.args, plain)
        node.kwargs = fx.node.map_arg(node.kwargs, plain)


def _draw_as_made(module: Any) -> None:
    """Draw what programs draw here: for a layer of plain numbers, once more for one that was trained as quantized."""
    layer = module[0] if isinstance(module, nn.Sequential) else module
    if not isinstance(layer, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        return
    if hasattr(layer, "weight_fake_quant"):
        draw_unused(layer.weight, layer.bias)
    bias = layer.bias if layer.bias is not None or not hasattr(layer, "bn") else layer.bn.bias
    draw_unused(layer.weight, bias)


def convert_fx(
    graph_module: fx.GraphModule,
    convert_custom_config: Any = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: Any = None,
    backend_config: Any = None,
    keep_original_weights: bool = False,
) -> fx.GraphModule:
    """A quantized model of an observed one, which stays as it is.

    Args:
        graph_module: What `prepare_fx` or `prepare_qat_fx` gave, after data went through it.

    Raises:
        TypeError: It is no graph module.
    """
    if not isinstance(graph_module, fx.GraphModule):
        raise TypeError(
            f"convert_fx: argument 'graph_module' must be a GraphModule, found {type(graph_module).__name__}"
        )
    if isinstance(convert_custom_config, dict):
        ConvertCustomConfig.from_dict(convert_custom_config)  # refuses what is not offered
    made = copy.deepcopy(graph_module)
    _Converting(made).run()
    return made
