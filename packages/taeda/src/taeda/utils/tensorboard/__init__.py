"""Event files for TensorBoard, written through the package ``tensorboard``."""

try:
    import tensorboard  # noqa: F401
except ImportError as error:
    raise ImportError(
        "taeda.utils.tensorboard: events are written through the package tensorboard; try: pip install tensorboard"
    ) from error

from taeda.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
