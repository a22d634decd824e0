"""Signal processing: ``signal.windows`` has the windows of filters and spectra."""

from taeda_tensor_core.signal import windows

__all__ = ["windows"]
