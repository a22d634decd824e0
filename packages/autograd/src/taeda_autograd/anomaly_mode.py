"""Where programs look for anomaly mode."""

from taeda_autograd._anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
