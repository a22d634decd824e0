"""Quantizing models: after training, while they are trained, or anew for each input.

What a model computes is stored in quantized tensors, as integers with a scale; see `taeda.quantize_per_tensor`. Layers
compute on the numbers that these stand for: a quantized model takes less memory, and shows what quantization costs in
accuracy; it is no faster.

Example:
    >>> quantization = taeda.ao.quantization
    >>> model = nn.Sequential(quantization.QuantStub(), nn.Linear(4, 2), quantization.DeQuantStub()).eval()
    >>> model.qconfig = quantization.get_default_qconfig("x86")
    >>> observed = quantization.prepare(model)
    >>> _ = observed(taeda.randn(32, 4))
    >>> quantization.convert(observed)(taeda.randn(3, 4)).shape
    Size([3, 2])
"""

# ruff: noqa: F401 (the imported names are what the package offers)
from collections.abc import Iterable
from typing import Any

from taeda.ao.quantization.fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    FixedQParamsFakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_affine_fixed_qparams_fake_quant,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_histogram_fake_quant,
    default_per_channel_weight_fake_quant,
    default_symmetric_fixed_qparams_fake_quant,
    default_weight_fake_quant,
    disable_fake_quant,
    disable_observer,
    enable_fake_quant,
    enable_observer,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from taeda.ao.quantization.fuse_modules import (
    fuse_known_modules,
    fuse_modules,
    fuse_modules_qat,
)
from taeda.ao.quantization.fuser_method_mappings import (
    fuse_conv_bn,
    fuse_conv_bn_relu,
    fuse_convtranspose_bn,
    fuse_linear_bn,
    get_fuser_method,
)
from taeda.ao.quantization.granularity import (
    Granularity,
    MappingType,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    TorchAODType,
    ZeroPointDomain,
    get_block_size,
)
from taeda.ao.quantization.observer import (
    AffineQuantizedObserverBase,
    FixedQParamsObserver,
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    RecordingObserver,
    ReuseInputObserver,
    UniformQuantizationObserverBase,
    default_affine_fixed_qparams_observer,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_histogram_observer,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_symmetric_fixed_qparams_observer,
    default_weight_observer,
    get_observer_state_dict,
    load_observer_state_dict,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)
from taeda.ao.quantization.qconfig import (
    QConfig,
    QConfigDynamic,
    default_activation_only_qconfig,
    default_debug_qconfig,
    default_dynamic_qat_qconfig,
    default_dynamic_qconfig,
    default_embedding_qat_qconfig,
    default_embedding_qat_qconfig_4bit,
    default_per_channel_qconfig,
    default_per_channel_symmetric_qnnpack_qat_qconfig,
    default_per_channel_symmetric_qnnpack_qconfig,
    default_qat_qconfig,
    default_qat_qconfig_v2,
    default_qconfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    default_symmetric_qnnpack_qat_qconfig,
    default_symmetric_qnnpack_qconfig,
    default_weight_only_qconfig,
    float16_dynamic_qconfig,
    float16_static_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
    get_default_qat_qconfig,
    get_default_qat_qconfig_dict,
    get_default_qconfig,
    get_default_qconfig_dict,
    per_channel_dynamic_qconfig,
    qconfig_equals,
)
from taeda.ao.quantization.qconfig_mapping import (
    QConfigMapping,
    get_default_qat_qconfig_mapping,
    get_default_qconfig_mapping,
)
from taeda.ao.quantization.quant_type import QuantType
from taeda.ao.quantization.quantization_mappings import (
    DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    DEFAULT_QAT_MODULE_MAPPINGS,
    DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_dynamic_quant_module_class,
    get_static_quant_module_class,
)
from taeda.ao.quantization.quantize import (
    add_quant_dequant,
    convert,
    get_default_custom_config_dict,
    prepare,
    prepare_qat,
    propagate_qconfig_,
    quantize,
    quantize_dynamic,
    quantize_qat,
    swap_module,
)
from taeda.ao.quantization.stubs import (
    DeQuantStub,
    QuantStub,
    QuantWrapper,
)
from taeda.ao.quantization.utils import MatchAllNode, get_combined_dict

#: What is called with a class or a maker of observers.
ObserverOrFakeQuantize = ObserverBase | FakeQuantizeBase
QConfigAny = QConfig | None


def default_eval_fn(model: Any, calib_data: Iterable[tuple[Any, Any]]) -> None:
    """Run a model on data, pairs of input and target, so that its observers see what it computes."""
    model.eval()
    for data, _ in calib_data:
        model(data)


def __getattr__(name: str) -> object:
    if name == "quantize_fx":
        from importlib import import_module

        return import_module("taeda.ao.quantization.quantize_fx")
    raise AttributeError(f"module 'taeda.ao.quantization' has no attribute {name!r}")
