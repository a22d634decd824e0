"""Writers of event files come with another package."""

try:
    from tensorboardX import SummaryWriter
except ImportError as error:
    raise ImportError(
        "taeda.utils.tensorboard: events are written by the package tensorboardX; try: pip install tensorboardX"
    ) from error

__all__ = ["SummaryWriter"]
