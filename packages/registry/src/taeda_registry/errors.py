"""Exceptions of the registry; each also belongs to the built-in family that callers already catch."""


class RegistryError(Exception):
    """Base of every error the registry raises."""


class UnknownSlotError(RegistryError, LookupError):
    """A slot was named that nobody has declared."""


class ProviderNotFoundError(RegistryError, ImportError):
    """The chosen provider of a slot is not installed."""


class ProviderFailedError(RegistryError, ImportError):
    """The chosen provider is installed but its import raised; the cause is chained."""


class InterfaceMismatchError(RegistryError, ImportError):
    """The chosen provider was written for another version of the slot's interface."""
