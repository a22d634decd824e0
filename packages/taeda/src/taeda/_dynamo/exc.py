"""Errors of compiling: of a backend of the program's own, and of a compiler that is not there."""


class TorchDynamoException(RuntimeError):
    """Base of the others."""


def _error(name: str, base: type = TorchDynamoException) -> type:
    return type(name, (base,), {"__module__": __name__, "__doc__": "Never raised: nothing is compiled."})


class BackendCompilerFailed(TorchDynamoException):
    """A compiler of graphs raised, or gave what cannot be called."""


class InvalidBackend(TorchDynamoException):
    """A name that no compiler has."""


class Unsupported(TorchDynamoException):
    """A function that must have a single graph has none."""


FailOnRecompileLimitHit = _error("FailOnRecompileLimitHit")
InternalTorchDynamoError = _error("InternalTorchDynamoError")
RecompileLimitExceeded = _error("RecompileLimitExceeded")
RecompileError = _error("RecompileError")
ResetRequired = _error("ResetRequired")
TorchRuntimeError = _error("TorchRuntimeError")
UncapturedHigherOrderOpError = _error("UncapturedHigherOrderOpError")


class UserError(Unsupported):
    """What a program says of an exported program's sizes does not fit its inputs."""
