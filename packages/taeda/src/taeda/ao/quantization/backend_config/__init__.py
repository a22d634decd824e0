"""What a backend can compute on quantized numbers: patterns of modules and functions, and the dtypes of each.

The descriptions can be made, changed and written as dicts; ready ones of PyTorch's own backends are not there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from taeda import _absent

__all__ = [
    "BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "ObservationType",
    "get_executorch_backend_config", "get_fbgemm_backend_config", "get_native_backend_config",
    "get_native_backend_config_dict", "get_onednn_backend_config", "get_qnnpack_backend_config",
    "get_tensorrt_backend_config", "get_tensorrt_backend_config_dict", "get_x86_backend_config",
]  # fmt: skip

globals().update(
    _absent.functions(
        __name__,
        " ".join(name for name in __all__ if name.startswith("get_")),
        "describe what the backend can compute by a BackendConfig",
    )
)


class ObservationType(Enum):
    """How the numbers that an operator gives are observed."""

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    INPUT_OUTPUT_NOT_OBSERVED = 2


@dataclass
class DTypeWithConstraints:
    """A dtype with bounds of its numbers and scales."""

    dtype: Any = None
    quant_min_lower_bound: int | float | None = None
    quant_max_upper_bound: int | float | None = None
    scale_min_lower_bound: int | float | None = None
    scale_max_upper_bound: int | float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None


def _constrained(dtype: Any) -> DTypeWithConstraints:
    return dtype if isinstance(dtype, DTypeWithConstraints) else DTypeWithConstraints(dtype=dtype)


_BOUND = ("input_dtype", "output_dtype", "weight_dtype")


class DTypeConfig:
    """The dtypes of an operator's input, output, weight and bias.

    Args:
        input_dtype: A dtype or one with constraints, as are `output_dtype` and `weight_dtype`.
        bias_dtype: A dtype.
        is_dynamic: Whether the input's scale is found at each call.

    Example:
        >>> import taeda
        >>> from taeda.ao.quantization.backend_config import DTypeConfig
        >>> DTypeConfig(input_dtype=taeda.quint8).input_dtype
        taeda.quint8
    """

    def __init__(
        self,
        input_dtype: Any = None,
        output_dtype: Any = None,
        weight_dtype: Any = None,
        bias_dtype: Any = None,
        is_dynamic: bool | None = None,
    ) -> None:
        self.input_dtype_with_constraints = _constrained(input_dtype)
        self.output_dtype_with_constraints = _constrained(output_dtype)
        self.weight_dtype_with_constraints = _constrained(weight_dtype)
        self.bias_dtype = bias_dtype
        self.is_dynamic = is_dynamic

    @property
    def input_dtype(self) -> Any:
        """The input's dtype."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self) -> Any:
        """The output's dtype."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self) -> Any:
        """The weight's dtype."""
        return self.weight_dtype_with_constraints.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypeConfig) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"DTypeConfig({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @classmethod
    def from_dict(cls, dtype_config_dict: dict[str, Any]) -> DTypeConfig:
        """What `to_dict` wrote, or a dict of plain dtypes."""
        found = {
            name: DTypeWithConstraints(**value) if isinstance(value, dict) else value
            for name, value in dtype_config_dict.items()
        }
        return cls(**found)

    def to_dict(self) -> dict[str, Any]:
        """As a dict, without what is not given."""
        found = {name: asdict(getattr(self, f"{name}_with_constraints")) for name in _BOUND}
        return {
            **{name: value for name, value in found.items() if value["dtype"] is not None},
            **{
                name: getattr(self, name)
                for name in ("bias_dtype", "is_dynamic")
                if getattr(self, name) is not None
            },
        }


# Of a pattern's dict: the key, and the attribute that it stands for.
_KEYS = {
    "pattern": "pattern",
    "observation_type": "observation_type",
    "dtype_configs": "dtype_configs",
    "root_module": "root_module",
    "qat_module": "qat_module",
    "reference_quantized_module_for_root": "reference_quantized_module",
    "fused_module": "fused_module",
    "fuser_method": "fuser_method",
    "root_node_getter": "_root_node_getter",
    "extra_inputs_getter": "_extra_inputs_getter",
    "num_tensor_args_to_observation_type": "_num_tensor_args_to_observation_type",
    "input_type_to_index": "_input_type_to_index",
    "pattern_complex_format": "_pattern_complex_format",
}


class BackendPatternConfig:
    """How one pattern of modules or functions is quantized; each method gives the config back, so calls can be chained.

    Args:
        pattern: A module's class, a function, a name of a method, or a tuple of these in the order of calls.

    Example:
        >>> from taeda import nn
        >>> from taeda.ao.quantization.backend_config import BackendPatternConfig
        >>> BackendPatternConfig(nn.Linear).set_root_module(nn.Linear).root_module.__name__
        'Linear'
    """

    def __init__(self, pattern: Any = None) -> None:
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs: list[DTypeConfig] = []
        self.root_module: type | None = None
        self.qat_module: type | None = None
        self.reference_quantized_module: type | None = None
        self.fused_module: type | None = None
        self.fuser_method: Any = None
        self._root_node_getter: Any = None
        self._extra_inputs_getter: Any = None
        self._num_tensor_args_to_observation_type: dict[int, ObservationType] = {}
        self._input_type_to_index: dict[str, int] = {}
        self._pattern_complex_format: Any = None

    def add_dtype_config(self, dtype_config: DTypeConfig) -> BackendPatternConfig:
        """One set of dtypes more."""
        self.dtype_configs.append(dtype_config)
        return self

    def set_dtype_configs(self, dtype_configs: list[DTypeConfig]) -> BackendPatternConfig:
        """All sets of dtypes."""
        self.dtype_configs = dtype_configs
        return self

    @classmethod
    def from_dict(cls, backend_pattern_config_dict: dict[str, Any]) -> BackendPatternConfig:
        """What `to_dict` wrote."""
        made = cls()
        for key, value in backend_pattern_config_dict.items():
            if key == "dtype_configs":
                value = [DTypeConfig.from_dict(each) if isinstance(each, dict) else each for each in value]
            if key in _KEYS:
                setattr(made, _KEYS[key], value)
        return made

    def to_dict(self) -> dict[str, Any]:
        """As a dict, without what is not given."""
        found: dict[str, Any] = {
            "observation_type": self.observation_type,
            "dtype_configs": [each.to_dict() for each in self.dtype_configs],
        }
        for key, name in _KEYS.items():
            value = getattr(self, name)
            if key not in found and value is not None and value != {}:
                found[key] = value
        return found


def _setter(attribute: str, argument: str) -> Any:
    def set_value(self: BackendPatternConfig, value: Any) -> BackendPatternConfig:
        setattr(self, attribute, value)
        return self

    set_value.__name__ = set_value.__qualname__ = (
        f"{'_' * attribute.startswith('_')}set_{attribute.lstrip('_')}"
    )
    set_value.__doc__ = f"The config with this {argument}."
    return set_value


for _attribute in _KEYS.values():
    if _attribute != "dtype_configs":
        _method = _setter(_attribute, _attribute.lstrip("_").replace("_", " "))
        setattr(BackendPatternConfig, _method.__name__, _method)


class BackendConfig:
    """What a backend can compute on quantized numbers, pattern by pattern.

    Args:
        name: The backend's.

    Example:
        >>> from taeda import nn
        >>> from taeda.ao.quantization.backend_config import BackendConfig, BackendPatternConfig
        >>> len(BackendConfig("mine").set_backend_pattern_config(BackendPatternConfig(nn.Linear)).configs)
        1
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._by_pattern: dict[Any, BackendPatternConfig] = {}

    def __repr__(self) -> str:
        return f"BackendConfig({vars(self)})"

    def set_name(self, name: str) -> BackendConfig:
        """The config with another name."""
        self.name = name
        return self

    def set_backend_pattern_config(self, config: BackendPatternConfig) -> BackendConfig:
        """The config with one pattern more, or another one in the place of an equal pattern."""
        key = config.pattern if config._pattern_complex_format is None else config._pattern_complex_format
        self._by_pattern[key] = config
        return self

    def set_backend_pattern_configs(self, configs: list[BackendPatternConfig]) -> BackendConfig:
        """The config with several patterns more."""
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self) -> list[BackendPatternConfig]:
        """A list of the patterns' configs."""
        return list(self._by_pattern.values())

    @classmethod
    def from_dict(cls, backend_config_dict: dict[str, Any]) -> BackendConfig:
        """What `to_dict` wrote."""
        made = cls(backend_config_dict.get("name", ""))
        for each in backend_config_dict.get("configs", []):
            config = each if isinstance(each, BackendPatternConfig) else BackendPatternConfig.from_dict(each)
            made.set_backend_pattern_config(config)
        return made

    def to_dict(self) -> dict[str, Any]:
        """As a dict."""
        return {"name": self.name, "configs": [config.to_dict() for config in self.configs]}
