"""Layers with weights, and where quantizing begins and ends."""

from __future__ import annotations

from typing import Any, ClassVar

import taeda
from taeda_registry.slots import nn, tensor


def quantized_weight(weight: Any, observer: Any) -> Any:
    """A weight, quantized as an observer that has seen it says."""
    scale, zero_point = observer.calculate_qparams()
    if observer.qscheme.name.startswith("per_channel"):
        zeros = zero_point if zero_point.is_floating_point() else zero_point.to(taeda.int64)
        return taeda.quantize_per_channel(
            weight.detach().float(), scale, zeros, observer.ch_axis, observer.dtype
        )
    return taeda.quantize_per_tensor(weight.detach().float(), float(scale), int(zero_point), observer.dtype)


def observed_weight(mod: Any, weight: Any) -> Any:
    """The quantized weight of a layer: by its own observer where it has one, else by that of its configuration."""
    observer = getattr(mod, "weight_fake_quant", None)
    if observer is None:
        observer = mod.qconfig.weight()
    if observer.dtype not in (taeda.qint8, taeda.quint8):
        raise AssertionError(f"Weight observer must have dtype torch.qint8, found {observer.dtype}")
    observer(weight)
    return quantized_weight(weight, observer)


def output_scale(mod: Any) -> tuple[float, int]:
    """The scale and the zero point of what a layer gives, by its observer."""
    watch = getattr(mod, "activation_post_process", None)
    if watch is None or isinstance(watch, nn.Identity):
        return 1.0, 0
    scale, zero_point = watch.calculate_qparams()
    return float(scale), int(zero_point)


class _Quantized(nn.Module):
    """What they share: the quantized weight and the bias, the scale of the result, and how these are saved."""

    _version = 3
    _relu = False

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self._weight: Any = None
        self._bias: Any = None

    def weight(self) -> Any:
        """The quantized weight."""
        return self._weight

    def bias(self) -> Any:
        """The bias, float32, or None."""
        return self._bias

    def set_weight_bias(self, w: Any, b: Any) -> None:
        """Other ones."""
        self._weight, self._bias = w, None if b is None else b.detach()

    def _weight_bias(self) -> tuple[Any, Any]:
        return self._weight, self._bias

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        self._save_weights(destination, prefix)
        destination[prefix + "scale"] = taeda.tensor(self.scale)
        destination[prefix + "zero_point"] = taeda.tensor(self.zero_point)
        self._save_packed(destination, prefix)

    def _save_weights(self, destination: Any, prefix: str) -> None:
        destination[prefix + "weight"], destination[prefix + "bias"] = self._weight, self._bias

    def _save_packed(self, destination: Any, prefix: str) -> None:
        """What stands behind the scale: nothing."""

    def _load_packed(self, state_dict: Any, prefix: str) -> None:
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        self._load_packed(state_dict, prefix)
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def _stored(self) -> Any:
        return tensor.quantized.layers.Stored(self.scale, self.zero_point)

    def _take(self, mod: Any, weight: Any, bias: Any) -> Any:
        self.set_weight_bias(observed_weight(mod, weight), bias)
        self.scale, self.zero_point = output_scale(mod)
        self.train(mod.training)
        return self


def _layer(mod: Any) -> Any:
    """The layer with the weight: the first of fused ones."""
    return mod[0] if isinstance(mod, nn.Sequential) else mod


def _with_settings(mod: Any) -> Any:
    """The layer with the weight, and what was said and seen of the whole."""
    layer = _layer(mod)
    if layer is not mod:
        layer.qconfig = mod.qconfig
        if hasattr(mod, "activation_post_process"):
            layer.activation_post_process = mod.activation_post_process
    return layer


def _observed_layer(mod: Any) -> Any:
    """The layer with the weight, into which a normalization is folded."""
    folded = getattr(mod, "folded", None)
    return folded() if folded is not None else _with_settings(mod)


class Linear(_Quantized):
    """A linear layer of quantized tensors.

    Args:
        in_features, out_features: Sizes of the last dimensions.
        bias_: Whether a bias is added. dtype: qint8.
    """

    _float_module: ClassVar[str] = "Linear"

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = taeda.qint8
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        empty = taeda.zeros(out_features, in_features)
        self.set_weight_bias(
            taeda.quantize_per_tensor(empty, 1.0, 0, dtype), taeda.zeros(out_features) if bias_ else None
        )

    def _save_weights(self, destination: Any, prefix: str) -> None:
        """What stands before the scale: nothing."""

    def _save_packed(self, destination: Any, prefix: str) -> None:
        destination[prefix + "_packed_params.dtype"] = self._weight.dtype
        destination[prefix + "_packed_params._packed_params"] = (self._weight, self._bias)

    def _load_packed(self, state_dict: Any, prefix: str) -> None:
        state_dict.pop(prefix + "_packed_params.dtype")
        self.set_weight_bias(*state_dict.pop(prefix + "_packed_params._packed_params"))

    def _get_name(self) -> str:
        return "QuantizedLinearReLU" if self._relu else "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self._weight.qscheme()}"
        )

    def forward(self, x: Any) -> Any:
        return tensor.quantized.layers.linear(x, self._weight, self._bias, self._stored(), self._relu)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """The layer in place of an observed one."""
        layer = _observed_layer(mod)
        made = cls(layer.in_features, layer.out_features)
        return made._take(layer, layer.weight, layer.bias)


class _Conv(_Quantized):
    _dims = 2
    _float_module: ClassVar[str] = "Conv2d"
    _kept = (
        "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode",
    )  # fmt: skip

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        like = getattr(nn, self._float_module)(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
            device="meta",
        )  # fmt: skip
        self._begin(like)

    def _begin(self, like: Any) -> None:
        """Take the settings of a layer without memory, for which nothing was drawn."""
        self._describe(like)
        self.set_weight_bias(
            taeda.quantize_per_tensor(taeda.zeros(like.weight.shape), 1.0, 0, taeda.qint8),
            None if like.bias is None else taeda.zeros(like.bias.shape),
        )

    def _describe(self, like: Any) -> None:
        for name in self._kept:
            setattr(self, name, getattr(like, name))

    def _get_name(self) -> str:
        return f"QuantizedConv{'ReLU' if self._relu else ''}{self._dims}d"

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}",
            f"scale={self.scale}, zero_point={self.zero_point}",
        ]
        if any(p != 0 for p in ((self.padding,) if isinstance(self.padding, str) else self.padding)):
            parts.append(f"padding={self.padding}")
        if any(d != 1 for d in self.dilation):
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self._bias is None:
            parts.append("bias=False")
        return ", ".join(parts)

    def forward(self, input: Any) -> Any:
        x, padding = input, self.padding
        if self.padding_mode != "zeros":
            around = [p for p in reversed(self.padding) for _ in range(2)]
            padded = nn.functional.pad(x.dequantize(), around, mode=self.padding_mode)
            x, padding = taeda.quantize_per_tensor(padded, x.q_scale(), x.q_zero_point(), x.dtype), 0
        return tensor.quantized.layers.conv(
            self._dims, x, self._weight, self._bias, self.stride, padding, self.dilation, self.groups,
            self._stored(), self._relu,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> _Conv:
        """The layer in place of an observed one."""
        layer = _observed_layer(mod)
        made = cls(layer.in_channels, layer.out_channels, layer.kernel_size)
        made._describe(layer)
        return made._take(layer, layer.weight, layer.bias)


class _ConvTranspose(_Conv):
    _kept = (*_Conv._kept, "output_padding")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        _Quantized.__init__(self)
        like = getattr(nn, self._float_module)(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
            padding_mode, device="meta",
        )  # fmt: skip
        self._begin(like)

    def _get_name(self) -> str:
        return f"QuantizedConvTranspose{self._dims}d"

    def extra_repr(self) -> str:
        after = "" if not any(self.output_padding) else f", output_padding={self.output_padding}"
        return super().extra_repr() + after

    def forward(self, input: Any) -> Any:
        return tensor.quantized.layers.conv_transpose(
            self._dims, input, self._weight, self._bias, self.stride, self.padding, self.output_padding, self.groups,
            self.dilation, self._stored(),
        )  # fmt: skip


def _conv(base: type, kind: str, dims: int) -> type:
    name = f"{kind}{dims}d"
    return type(name, (base,), {
        "_dims": dims, "_float_module": name, "__module__": "taeda.ao.nn.quantized",
        "__doc__": f"`nn.{name}` of quantized tensors, with the same arguments.",
    })  # fmt: skip


Conv1d, Conv2d, Conv3d = (_conv(_Conv, "Conv", dims) for dims in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (
    _conv(_ConvTranspose, "ConvTranspose", dims) for dims in (1, 2, 3)
)


class Quantize(nn.Module):
    """Quantizes what comes in.

    Args:
        scale, zero_point: Numbers, or tensors of one. dtype: qint8, quint8 or qint32.
    """

    scale: Any
    zero_point: Any

    def __init__(
        self, scale: Any, zero_point: Any, dtype: Any, factory_kwargs: dict[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.register_buffer("scale", taeda.tensor([float(scale)]))
        self.register_buffer("zero_point", taeda.tensor([int(zero_point)], dtype=taeda.long))
        self.dtype = dtype

    def forward(self, X: Any) -> Any:
        return taeda.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Quantize:
        """The module in place of an observed `QuantStub`."""
        return Quantize(*output_scale(mod), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """Gives what quantized tensors stand for."""

    def forward(self, Xq: Any) -> Any:
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """The module in place of a `DeQuantStub`."""
        return DeQuantize()


class Embedding(_Quantized):
    """`nn.Embedding` with a quantized table; it gives float32.

    Args:
        num_embeddings, embedding_dim: Size of the table.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = taeda.quint8, **_: Any) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        ones, zeros = taeda.ones(num_embeddings), taeda.zeros(num_embeddings)
        self.set_weight_bias(
            taeda.quantize_per_channel(taeda.zeros(num_embeddings, embedding_dim), ones, zeros, 0, dtype),
            None,
        )

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self._weight.dtype}, qscheme={self._weight.qscheme()}"
        )

    def forward(self, indices: Any) -> Any:
        return nn.functional.embedding(indices, self._weight.dequantize())

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Embedding:
        """The layer in place of one with a configuration of float_qparams_weight_only_qconfig's kind.

        Raises:
            AssertionError: The configuration is for layers that quantize what they give.
        """
        if mod.qconfig.weight().qscheme.name != "per_channel_affine_float_qparams":
            raise AssertionError(
                "Embedding quantization is only supported with float_qparams_weight_only_qconfig."
            )
        made = cls(mod.num_embeddings, mod.embedding_dim)
        made._settings(mod)
        made.set_weight_bias(observed_weight(mod, mod.weight), None)
        return made

    def _settings(self, mod: Any) -> None:
        pass


class EmbeddingBag(Embedding):
    """`nn.EmbeddingBag` with a quantized table; it gives float32."""

    mode, include_last_offset = "sum", False

    def _settings(self, mod: Any) -> None:
        self.mode, self.include_last_offset = mod.mode, mod.include_last_offset

    def forward(self, indices: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return nn.functional.embedding_bag(
            indices, self._weight.dequantize(), offsets, mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
        )  # fmt: skip
