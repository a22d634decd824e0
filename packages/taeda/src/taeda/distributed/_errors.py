"""What goes wrong between processes."""


class DistError(RuntimeError):
    """Failure of a process group."""


class DistBackendError(DistError):
    """Failure of a way of communication."""


class DistNetworkError(DistError):
    """Failure of the network."""


class DistStoreError(DistError):
    """Failure of a store."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing in it."""
