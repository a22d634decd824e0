"""Errors of a compiler of Python code, which programs catch; none is ever raised."""

from __future__ import annotations

__all__ = [
    "BackendCompilerFailed", "FailOnRecompileLimitHit", "InternalTorchDynamoError", "RecompileLimitExceeded",
    "ResetRequired", "TorchDynamoException", "TorchRuntimeError", "Unsupported", "UserError",
]  # fmt: skip


class TorchDynamoException(RuntimeError):
    """What all of them are."""


class InternalTorchDynamoError(TorchDynamoException):
    """An error of the compiler itself."""


class ResetRequired(TorchDynamoException):
    """`reset` is needed."""


class BackendCompilerFailed(TorchDynamoException):
    """A compiler of graphs failed."""


class Unsupported(TorchDynamoException):
    """Something that cannot be compiled."""


class RecompileLimitExceeded(Unsupported):
    """Compiled too often."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """Compiled too often, which is an error."""


class UserError(Unsupported):
    """A program that is not as it must be."""


class TorchRuntimeError(TorchDynamoException):
    """An operator failed while compiling."""
