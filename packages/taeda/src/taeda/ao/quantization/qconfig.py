"""Which observers a module gets, for what it gives and for its weights."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import taeda
from taeda.ao.quantization import fake_quantize as fake
from taeda.ao.quantization import observer as watch
from taeda_registry.slots import nn

_REDUCED = frozenset({"fbgemm", "x86"})


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """The makers of two observers, or of modules that quantize.

    Attributes:
        activation: For what a module gives. weight: For its weight.

    Raises:
        ValueError: A module is given, where a maker is expected.

    Example:
        >>> quantization = taeda.ao.quantization
        >>> quantization.QConfig(quantization.MinMaxObserver, quantization.default_weight_observer).weight().qscheme
        taeda.per_tensor_symmetric
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """The older name of the configuration of what is quantized anew for each input."""

    __slots__ = ()

    def __new__(cls, activation: Any = nn.Identity, weight: Any = nn.Identity) -> QConfigDynamic:
        return super().__new__(cls, activation, weight)


default_qconfig = QConfig(activation=watch.default_observer, weight=watch.default_weight_observer)
default_debug_qconfig = QConfig(activation=watch.default_debug_observer, weight=watch.default_weight_observer)
default_per_channel_qconfig = QConfig(
    activation=watch.default_observer, weight=watch.default_per_channel_weight_observer
)
default_dynamic_qconfig = QConfig(
    activation=watch.default_dynamic_quant_observer, weight=watch.default_weight_observer
)
float16_dynamic_qconfig = QConfig(
    activation=watch.PlaceholderObserver.with_args(dtype=taeda.float16, is_dynamic=True),
    weight=watch.PlaceholderObserver.with_args(dtype=taeda.float16),
)
float16_static_qconfig = QConfig(
    activation=watch.PlaceholderObserver.with_args(dtype=taeda.float16),
    weight=watch.PlaceholderObserver.with_args(dtype=taeda.float16),
)
per_channel_dynamic_qconfig = QConfig(
    activation=watch.default_dynamic_quant_observer, weight=watch.default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    activation=watch.default_placeholder_observer, weight=watch.default_float_qparams_observer
)
default_qat_qconfig = QConfig(activation=fake.default_fake_quant, weight=fake.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(
    activation=fake.default_dynamic_fake_quant, weight=fake.default_weight_fake_quant
)
default_weight_only_qconfig = QConfig(activation=nn.Identity, weight=fake.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(activation=fake.default_fake_quant, weight=nn.Identity)
default_qat_qconfig_v2 = QConfig(
    activation=fake.default_fused_act_fake_quant, weight=fake.default_fused_wt_fake_quant
)
default_reuse_input_qconfig = QConfig(
    activation=watch.default_reuse_input_observer, weight=watch.NoopObserver
)


def _checked(name: str, backend: str) -> str:
    if backend not in ("fbgemm", "x86", "qnnpack", "onednn"):
        raise AssertionError(
            f"{name}: backend '{backend}' is not supported; expected 'x86', 'fbgemm', 'qnnpack' or 'onednn'"
        )
    return backend


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """Observers for quantizing a trained model.

    Args:
        backend: 'x86' or 'fbgemm' (one bit of activations is left unused), 'qnnpack' (weights have one scale), or
            'onednn'.

    Raises:
        AssertionError: Another name.
    """
    _checked("get_default_qconfig", backend)
    weight = (
        watch.default_weight_observer if backend == "qnnpack" else watch.default_per_channel_weight_observer
    )
    return QConfig(
        activation=watch.HistogramObserver.with_args(reduce_range=backend in _REDUCED), weight=weight
    )


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """Modules that quantize while a model is trained; arguments are those of `get_default_qconfig`."""
    _checked("get_default_qat_qconfig", backend)
    kind = fake.FakeQuantize if version == 0 else fake.FusedMovingAvgObsFakeQuantize
    activation = kind.with_args(
        observer=watch.MovingAverageMinMaxObserver, quant_min=0, quant_max=255,
        **({} if backend == "onednn" else {"reduce_range": backend in _REDUCED}),
    )  # fmt: skip
    channels, whole = fake.default_fused_per_channel_wt_fake_quant, fake.default_fused_wt_fake_quant
    if version == 0:
        channels, whole = fake.default_per_channel_weight_fake_quant, fake.default_weight_fake_quant
    return QConfig(activation=activation, weight=whole if backend == "qnnpack" else channels)


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """`get_default_qconfig_mapping` as a dict, as older programs have it."""
    from taeda.ao.quantization.qconfig_mapping import get_default_qconfig_mapping

    return get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, Any]:
    """`get_default_qat_qconfig_mapping` as a dict, as older programs have it."""
    from taeda.ao.quantization.qconfig_mapping import get_default_qat_qconfig_mapping

    return get_default_qat_qconfig_mapping(backend, version).to_dict()


default_symmetric_qnnpack_qconfig = QConfig(
    activation=watch.HistogramObserver.with_args(dtype=taeda.qint8, reduce_range=False, eps=2**-12),
    weight=watch.weight_observer_range_neg_127_to_127,
)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    activation=watch.HistogramObserver.with_args(dtype=taeda.qint8, reduce_range=False, eps=2**-12),
    weight=watch.per_channel_weight_observer_range_neg_127_to_127,
)


def _symmetric_fake(observer: Any, least: int, **settings: Any) -> Any:
    return fake.FusedMovingAvgObsFakeQuantize.with_args(
        observer=observer, quant_min=least, quant_max=127, dtype=taeda.qint8, eps=2**-12, **settings
    )


_signed = _symmetric_fake(watch.MovingAverageMinMaxObserver, -128, reduce_range=False)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    activation=_signed,
    weight=_symmetric_fake(watch.MovingAverageMinMaxObserver, -127, qscheme=taeda.per_tensor_symmetric),
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    activation=_signed,
    weight=_symmetric_fake(
        watch.MovingAveragePerChannelMinMaxObserver, -127, qscheme=taeda.per_channel_symmetric
    ),
)
default_quint8_weight_qconfig = QConfig(activation=watch.HistogramObserver, weight=watch.MinMaxObserver)
float_qparams_weight_only_qconfig_4bit = QConfig(
    activation=watch.PlaceholderObserver, weight=watch.default_float_qparams_observer_4bit
)
_unseen = watch.NoopObserver.with_args(dtype=taeda.float32)
default_embedding_qat_qconfig = QConfig(activation=_unseen, weight=fake.default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(
    activation=_unseen, weight=fake.default_embedding_fake_quant_4bit
)


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Whether two make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, watch._PartialWrapper) and isinstance(b, watch._PartialWrapper):
            return a.p.func is b.p.func and a.p.keywords == b.p.keywords
        return a is b

    return same(q1.activation, q2.activation) and same(q1.weight, q2.weight)


#: A configuration, or none for what is left as it is.
QConfigAny = QConfig | None


def __getattr__(name: str) -> Any:
    """The observers, and modules that quantize, that configurations are made of."""
    for module in (watch, fake):
        if not name.startswith("_") and hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
