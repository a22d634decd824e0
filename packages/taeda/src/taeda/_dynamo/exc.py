"""Errors of a compiler that is not there: programs name them to catch them, and none is raised."""


class TorchDynamoException(RuntimeError):
    """Base of the others."""


def _error(name: str, base: type = TorchDynamoException) -> type:
    return type(name, (base,), {"__module__": __name__, "__doc__": "Never raised: nothing is compiled."})


BackendCompilerFailed = _error("BackendCompilerFailed")
FailOnRecompileLimitHit = _error("FailOnRecompileLimitHit")
InternalTorchDynamoError = _error("InternalTorchDynamoError")
InvalidBackend = _error("InvalidBackend")
RecompileError = _error("RecompileError")
ResetRequired = _error("ResetRequired")
TorchRuntimeError = _error("TorchRuntimeError")
UncapturedHigherOrderOpError = _error("UncapturedHigherOrderOpError")
Unsupported = _error("Unsupported")
UserError = _error("UserError", Unsupported)
