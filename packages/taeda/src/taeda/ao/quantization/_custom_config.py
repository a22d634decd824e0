"""What quantization by graphs leaves as it is, as programs describe it."""

from __future__ import annotations

from typing import Any, Self

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig"]


class _Config:
    """Settings that are made one after another; each setter gives the configuration."""

    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def set_preserved_attributes(self, attributes: list[str]) -> Self:
        """Attributes of the model that the graph module has too."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Self:
        """The configuration that a dict describes.

        Raises:
            NotImplementedError: The dict asks for what is not offered.
        """
        made = cls()
        for key, value in given.items():
            name = _NAMES.get(key, key)
            if hasattr(made, name):
                setattr(made, name, value)
            elif value:
                _refuse(cls.__name__, key)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict, without what is empty."""
        keys = {name: key for key, name in _NAMES.items()}
        return {keys.get(name, name): value for name, value in vars(self).items() if value}


#: Where keys of dicts are others than the settings.
_NAMES = {
    "non_traceable_module_name": "non_traceable_module_names",
    "non_traceable_module_class": "non_traceable_module_classes",
}


def _refuse(name: str, setting: str) -> Any:
    raise NotImplementedError(f"{name}: setting {setting!r} is not offered; quantize such parts apart")


class PrepareCustomConfig(_Config):
    """For `prepare_fx` and `prepare_qat_fx`.

    Example:
        >>> config = PrepareCustomConfig().set_non_traceable_module_names(["head"])
        >>> config.to_dict()
        {'non_traceable_module_name': ['head']}
    """

    def __init__(self) -> None:
        super().__init__()
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[type] = []

    def set_non_traceable_module_names(self, module_names: list[str]) -> Self:
        """Modules that stay whole, by their names."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[type]) -> Self:
        """Modules that stay whole, by their classes."""
        self.non_traceable_module_classes = module_classes
        return self


class ConvertCustomConfig(_Config):
    """For `convert_fx`."""


class FuseCustomConfig(_Config):
    """For `fuse_fx`."""


def _refused(owner: type, settings: str) -> None:
    for setting in settings.split():

        def refuse(self: Any, *given: Any, _setting: str = setting, **named: Any) -> Any:
            return _refuse(type(self).__name__, _setting)

        setattr(owner, f"set_{setting}", refuse)


_refused(
    PrepareCustomConfig,
    "float_to_observed_mapping input_quantized_indexes output_quantized_indexes standalone_module_class "
    "standalone_module_name",
)
_refused(ConvertCustomConfig, "observed_to_quantized_mapping")
