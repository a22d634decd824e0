"""Preparing models to be quantized, and converting them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import taeda
from taeda.ao.nn import quantizable, quantized
from taeda.ao.nn.intrinsic._fused import _FusedModule
from taeda.ao.quantization import qconfig as configs
from taeda.ao.quantization.fake_quantize import FixedQParamsFakeQuantize
from taeda.ao.quantization.observer import default_fixed_qparams_range_0to1_observer as _unit
from taeda.ao.quantization.observer import default_fixed_qparams_range_neg1to1_observer as _signed
from taeda.ao.quantization.quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
)
from taeda.ao.quantization.stubs import DeQuantStub, QuantWrapper
from taeda_registry.slots import nn

# What gives no tensor of numbers that would be quantized, or the numbers that it is given.
_UNWATCHED = (nn.RNNBase, nn.RNNCellBase, nn.Embedding, nn.EmbeddingBag, nn.Dropout, nn.ReLU6)
#: Layers of several steps, and what is observed and quantized in their place.
_DEFAULT_CUSTOM_CONFIG_DICT: dict[str, dict[Any, Any]] = {
    "float_to_observed_custom_module_class": {
        nn.LSTM: quantizable.LSTM,
        nn.MultiheadAttention: quantizable.MultiheadAttention,
    },
    "observed_to_quantized_custom_module_class": {
        quantizable.LSTM: quantized.LSTM,
        quantizable.MultiheadAttention: quantized.MultiheadAttention,
    },
}
# Observed custom layers behind which no observer stands, because their parts have them.
_WATCHED_INSIDE = (quantizable.LSTM, quantizable.MultiheadAttention)
_FIXED = {nn.Sigmoid: _unit, nn.Hardsigmoid: _unit, nn.Softmax: _unit, nn.Tanh: _signed}


def get_default_custom_config_dict() -> dict[str, dict[Any, Any]]:
    """Layers of several steps, and what is observed and quantized in their place."""
    return _DEFAULT_CUSTOM_CONFIG_DICT


def propagate_qconfig_(
    module: Any, qconfig_dict: dict[Any, Any] | None = None, prepare_custom_config_dict: Any = None
) -> None:
    """Gives every module in a model the configuration of the module that it is in, unless it has its own.

    Args:
        module: Changed in place.
        qconfig_dict: Configurations by the name or the class of modules; "" is the model's.
    """
    _propagate(module, qconfig_dict or {}, None, "")


def _propagate(module: Any, given: dict[Any, Any], parent: Any, path: str) -> None:
    own = getattr(module, "qconfig", given.get(path, given.get(type(module), parent)))
    module.qconfig = own
    for name, child in module.named_children():
        _propagate(child, given, own, f"{path}.{name}" if path else name)


def _observe(module: Any, input: Any, output: Any) -> Any:
    return module.activation_post_process(output)


def _observer(module: Any) -> Any:
    return (
        FixedQParamsFakeQuantize(observer=_FIXED[type(module)])
        if _is_fixed(module)
        else module.qconfig.activation()
    )


def _is_fixed(module: Any) -> bool:
    """Whether the range of what a module gives is known, and foreseen while it is trained."""
    return module.training and type(module) in _FIXED


def _watch(module: Any) -> None:
    module.add_module("activation_post_process", _observer(module))
    module.register_forward_hook(_observe, prepend=True)


def _add_observers(module: Any, kinds: set[Any], leaves_only: set[Any], custom: dict[Any, Any]) -> None:
    for name, child in list(module.named_children()):
        configured = getattr(child, "qconfig", None) is not None
        if configured and type(child) in custom:
            made = module._modules[name] = custom[type(child)].from_float(child)
            if not isinstance(made, _WATCHED_INSIDE):
                _watch(made)
            continue
        if isinstance(child, (DeQuantStub, *_UNWATCHED)):
            continue
        if isinstance(child, quantized.FloatFunctional):
            if configured:
                child.activation_post_process = child.qconfig.activation()
        elif configured and (
            isinstance(child, _FusedModule)
            or type(child) in kinds
            or type(child) in leaves_only
            or _is_fixed(child)
        ):
            if not _seen(child):
                _watch(child)
        else:
            _add_observers(child, kinds, leaves_only, custom)


def _seen(module: Any) -> bool:
    return "activation_post_process" in module._modules


def prepare(
    model: Any,
    inplace: bool = False,
    allow_list: Any = None,
    observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: Any = None,
) -> Any:
    """A model whose layers are observed: what goes through it afterwards says how it will be quantized.

    Args:
        model: With the attribute `qconfig`, itself or its modules.
        inplace: Whether the model itself is changed.
        allow_list: The classes of layers that are observed.
        observer_non_leaf_module_list: Others, which have layers inside.
        prepare_custom_config_dict: By "float_to_observed_custom_module_class": what takes the place of which layer; by
            default `nn.quantizable.LSTM` and `MultiheadAttention` of those of `nn`.

    Example:
        >>> quantization = taeda.ao.quantization
        >>> model = quantization.QuantWrapper(nn.Linear(4, 2)).eval()
        >>> model.qconfig = quantization.get_default_qconfig("x86")
        >>> prepared = quantization.prepare(model)
        >>> _ = prepared(taeda.randn(16, 4))
        >>> type(quantization.convert(prepared).module).__name__
        'Linear'
    """
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) is not None for m in model.modules()):
        import warnings

        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through "
            "`qconfig_dict` or by assigning the `.qconfig` attribute directly on submodules",
            stacklevel=2,
        )
    kinds = get_default_qconfig_propagation_list() if allow_list is None else set(allow_list)
    given = (
        get_default_custom_config_dict() if prepare_custom_config_dict is None else prepare_custom_config_dict
    )
    custom = given.get("float_to_observed_custom_module_class", {})
    _add_observers(model, kinds, set(observer_non_leaf_module_list or ()), custom)
    if type(model) in kinds and getattr(model, "qconfig", None) is not None and not _seen(model):
        _watch(model)
    return model


def prepare_qat(model: Any, mapping: dict[Any, Any] | None = None, inplace: bool = False) -> Any:
    """A model, in training mode, whose layers quantize and dequantize their weights and results.

    Raises:
        AssertionError: The model is in eval mode.
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    if not inplace:
        model = copy.deepcopy(model)
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    propagate_qconfig_(model)
    _swap_inside(model, mapping)
    return prepare(
        model, inplace=True, allow_list=get_default_qconfig_propagation_list() | set(mapping.values())
    )


def _swapped(module: Any, mapping: dict[Any, Any], custom: dict[Any, Any] | None = None) -> Any:
    own, kind = (custom or {}).get(type(module)), mapping.get(type(module))
    if (own is None and kind is None) or getattr(module, "qconfig", None) is None:
        return module
    made = kind.from_float(module) if own is None else own.from_observed(module)
    _unwatch(made)
    for hook in list(module._forward_hooks.values()):
        if hook is not _observe and hook not in made._forward_hooks.values():
            made.register_forward_hook(hook)
    for hook in list(module._forward_pre_hooks.values()):
        if hook not in made._forward_pre_hooks.values():
            made.register_forward_pre_hook(hook)
    return made


def swap_module(
    mod: Any,
    mapping: dict[Any, Any],
    custom_module_class_mapping: Any = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """The module that takes the place of another, or that itself."""
    return _swapped(mod, mapping, custom_module_class_mapping)


def _swap_inside(module: Any, mapping: dict[Any, Any], custom: dict[Any, Any] | None = None) -> None:
    for name, child in list(module.named_children()):
        made = _swapped(child, mapping, custom)
        if made is child:
            _swap_inside(child, mapping, custom)
        else:
            module._modules[name] = made


def convert(
    module: Any,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: Any = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """A prepared model with quantized layers in place of the observed ones.

    Args:
        module: What `prepare` or `prepare_qat` gave, after data went through it.
        mapping: Which layer takes the place of which.
        inplace: Whether the model itself is changed.
        remove_qconfig: Whether configurations and observers are taken off.
        convert_custom_config_dict: By "observed_to_quantized_custom_module_class": what takes the place of which layer
            that was observed in place of another; those of `prepare` by default.

    Raises:
        NotImplementedError: `is_reference` is asked for.
    """
    if is_reference:
        raise NotImplementedError("convert: argument 'is_reference' is True, reference models are not there")
    if not inplace:
        module = copy.deepcopy(module)
    mapping = get_default_static_quant_module_mappings() if mapping is None else mapping
    if type(module) in mapping and getattr(module, "qconfig", None) is not None:
        module = _swapped(module, mapping)
    else:
        given = (
            get_default_custom_config_dict()
            if convert_custom_config_dict is None
            else convert_custom_config_dict
        )
        _swap_inside(module, mapping, given.get("observed_to_quantized_custom_module_class", {}))
    if remove_qconfig:
        _clean(module)
    return module


def _clean(module: Any) -> None:
    for child in module.modules():
        child.__dict__.pop("qconfig", None)
        if not isinstance(child, (quantized.FloatFunctional, quantized.QFunctional)):
            child._modules.pop("activation_post_process", None)
        _unwatch(child)


#: The name that libraries import it by.
_remove_qconfig = _clean


def _unwatch(module: Any) -> None:
    for key in [key for key, hook in module._forward_hooks.items() if hook is _observe]:
        del module._forward_hooks[key]


def quantize(
    model: Any,
    run_fn: Callable[..., Any],
    run_args: Any,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
) -> Any:
    """A quantized model: `run_fn(model, *run_args)` sends through it what it is observed with."""
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, mapping, inplace=True)
    return model


def quantize_qat(model: Any, run_fn: Callable[..., Any], run_args: Any, inplace: bool = False) -> Any:
    """A model that `run_fn(model, *run_args)` trains while it foresees quantization, and quantized then."""
    if not inplace:
        model = copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, inplace=True)
    return model


def quantize_dynamic(
    model: Any,
    qconfig_spec: Any = None,
    dtype: Any = taeda.qint8,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
) -> Any:
    """A model whose layers have quantized weights, and quantize their inputs anew each time; they give float32.

    Args:
        model: Any model.
        qconfig_spec: The classes or names of the layers, or a dict of configurations by them; `Linear` and recurrent
            layers by default.
        dtype: qint8, or float16 for weights of half precision; quint8 for embeddings.
        inplace: Whether the model itself is changed.

    Raises:
        ValueError: Another dtype.

    Example:
        >>> m = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
        >>> taeda.ao.quantization.quantize_dynamic(m, {nn.Linear}, dtype=taeda.qint8)[0]
        DynamicQuantizedLinear(in_features=4, out_features=3, dtype=taeda.qint8, qscheme=taeda.per_tensor_affine)
    """
    known = {
        taeda.qint8: configs.default_dynamic_qconfig,
        taeda.float16: configs.float16_dynamic_qconfig,
        taeda.quint8: configs.float_qparams_weight_only_qconfig,
    }
    if qconfig_spec is None or isinstance(qconfig_spec, (set, list, tuple)):
        if dtype not in known:
            raise ValueError(
                f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please"
            )
        kinds = qconfig_spec or (
            {nn.EmbeddingBag, nn.Embedding} if dtype is taeda.quint8
            else {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell}
        )  # fmt: skip
        qconfig_spec = dict.fromkeys(kinds, known[dtype])
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(
        model, get_default_dynamic_quant_module_mappings() if mapping is None else mapping, inplace=True
    )


def add_quant_dequant(module: Any) -> Any:
    """A model whose layers with a configuration stand between stand-ins each; the whole, where it has one itself."""
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in list(module.named_children()):
        module._modules[name] = add_quant_dequant(child)
    return module
