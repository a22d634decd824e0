"""State of the default random generators."""

from __future__ import annotations

from taeda_tensor_core import _C
from taeda_tensor_core._C import Generator, Tensor, manual_seed

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def default_generator(device: object = "cpu") -> Generator:
    """The generator that operators on `device` use when none is given."""
    return _C._default_generator(device)


def get_rng_state(device: object = "cpu") -> Tensor:
    """State of the device's default generator, a uint8 tensor."""
    return default_generator(device).get_state()


def set_rng_state(new_state: Tensor, device: object = "cpu") -> None:
    """Go back to a state that get_rng_state gave."""
    default_generator(device).set_state(new_state)


def seed() -> int:
    """Seed all default generators from the system's entropy; return the seed."""
    import secrets

    value = secrets.randbits(53)
    manual_seed(value)
    return value


def initial_seed() -> int:
    """Seed of the cpu's default generator."""
    return default_generator().initial_seed()


class fork_rng:
    """Context in which random numbers may be drawn without changing the default generator's state outside."""

    def __init__(self, devices: object = None, enabled: bool = True) -> None:
        self._enabled = enabled
        self._states: list[Tensor] = []

    def __enter__(self) -> None:
        self._states.append(get_rng_state())

    def __exit__(self, *exception: object) -> None:
        state = self._states.pop()
        if self._enabled:
            set_rng_state(state)
