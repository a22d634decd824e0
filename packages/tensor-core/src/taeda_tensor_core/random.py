"""State of the default random generators."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from taeda_tensor_core import _C
from taeda_tensor_core._C import Generator, Tensor

__all__ = [
    "default_generator",
    "fork_rng",
    "generator_of",
    "get_engine",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_engine",
    "set_rng_state",
    "thread_safe_generator",
]


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices, also of those that appear later.

    Args:
        seed: An integer from -2**63 to 2**64 - 1.

    Returns:
        The cpu's generator.

    Example:
        >>> first = taeda.manual_seed(0), taeda.rand(2)
        >>> again = taeda.manual_seed(seed=0), taeda.rand(2)
        >>> taeda.equal(first[1], again[1])
        True
    """
    return _C.manual_seed(seed)


#: The generator that operators on the cpu use when none is given.
default_generator: Generator = _C._default_generator("cpu")


def generator_of(device: object = "cpu") -> Generator:
    """The generator that operators on `device` use when none is given."""
    return _C._default_generator(device)


def get_rng_state(device: object = "cpu") -> Tensor:
    """State of the device's default generator, a uint8 tensor."""
    return generator_of(device).get_state()


def set_rng_state(new_state: Tensor, device: object = "cpu") -> None:
    """Go back to a state that get_rng_state gave."""
    generator_of(device).set_state(new_state)


def set_engine(engine: str) -> None:
    """Choose what the cpu's generators make their numbers by; `TAEDA_RANDOM` in the environment does so at start.

    Args:
        engine: "philox", the default: a counter, whose numbers any number of threads fill in at once, the same ones.
            "mt19937": the Mersenne twister of PyTorch's cpu. A program that is seeded then draws the very numbers that
            it draws there (uniform, normal, exponential, Cauchy, geometric, Poisson, binomial and gamma ones, and what
            is made of these, integers, permutations, `bernoulli`, `multinomial`, dropout), of normal and exponential
            numbers all but the last digits, on one thread, and convolutions keep the layout of their input, in whose
            order masks are drawn. States are exchanged with PyTorch's: `set_rng_state` takes them and `get_rng_state`
            gives them.
            Other distributions draw from the same stream, but other numbers.

    The default generator goes to the beginning of its seed's stream, and generators that are made later are of the same
    engine.

    Raises:
        ValueError: It is neither.

    Example:
        >>> taeda.random.set_engine("mt19937")
        >>> int(taeda.manual_seed(42) and taeda.randint(10, ()))
        2
        >>> taeda.random.set_engine("philox")

    Source:
        Matsumoto and Nishimura, Mersenne Twister (ACM TOMACS 8, 1998); Salmon et al., Parallel random numbers: as easy
        as 1, 2, 3 (SC 2011).
    """
    _C._set_random_engine(engine)


def get_engine() -> str:
    """The engine of the cpu's generators that are made now: "philox" or "mt19937"."""
    return _C._random_engine()


def seed() -> int:
    """Seed all default generators from the system's entropy; return the seed."""
    import secrets

    value = secrets.randbits(53)
    manual_seed(value)
    return value


def initial_seed() -> int:
    """Seed of the cpu's default generator."""
    return default_generator.initial_seed()


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[object] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Context in which random numbers may be drawn without changing the default generators' states outside.

    Args:
        devices: Devices, or indices of `device_type`, whose generators are kept beside the cpu's; by default all of
            that type that there are.
        enabled: False changes nothing.
        device_type: Kind of the devices; by default that of the accelerator, if there is one.

    Example:
        >>> with taeda.random.fork_rng():
        ...     noise = taeda.randn(3)
    """
    if not enabled:
        yield
        return
    places = ["cpu", *_places(devices, device_type)]
    generators = [generator_of(place) for place in places]
    states = [generator.get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def _places(devices: Iterable[object] | None, device_type: str | None) -> list[object]:
    if device_type in ("cpu", "meta"):
        return []
    if device_type is None:
        from taeda_tensor_core import accelerator

        found = accelerator.current_accelerator()
        if found is None:
            return [one for one in devices or () if not isinstance(one, int)]
        device_type = found.type
    if devices is None:
        from taeda_tensor_core.device_module import get_device_module

        devices = range(get_device_module(device_type).device_count())
    return [f"{device_type}:{one}" if isinstance(one, int) else one for one in devices]


def thread_safe_generator() -> None:
    """None: workers of a loader have generators of their own, which random operators use when none is given."""
