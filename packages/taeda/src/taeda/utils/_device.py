"""Where programs look for the mode of the default device."""

from taeda_registry.slots import tensor

DeviceContext = tensor.default_device.DeviceContext
set_device = tensor.default_device.set_device

__all__ = ["DeviceContext", "set_device"]
