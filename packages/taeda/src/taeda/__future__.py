"""Switches for coming behaviour. Those that exist elsewhere can be set and read."""

from __future__ import annotations

from taeda_registry.slots import nn

_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions such as ``module.double()`` give modules new parameters and leave the old ones as they were.

    Without it, as at first, the parameters and their gradients are given new data.
    """
    nn.modules._convert.overwrites_parameters = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What was set; False at first."""
    return nn.modules._convert.overwrites_parameters


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Kept and returned; modules exchange the data of their parameters in any case."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """What was set; False at first."""
    return _swap_module_params_on_conversion
