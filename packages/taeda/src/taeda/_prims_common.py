"""A check that libraries call by its private name."""

from taeda_registry.slots import tensor


def alert_not_deterministic(caller: str) -> None:
    """RuntimeError, or a warning, when only deterministic algorithms are allowed.

    Args:
        caller: The function that has none.
    """
    if not tensor.are_deterministic_algorithms_enabled():
        return
    text = f"{caller} does not have a deterministic implementation, but use_deterministic_algorithms(True) is set."
    if not tensor.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(text)
    import warnings

    warnings.warn(text, UserWarning, stacklevel=2)
