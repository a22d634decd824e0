"""What programs ask of one kind of device, as ``taeda.<device>``, and of whichever accelerator there is."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

from taeda_tensor_core import _C, _plugins, backends, random, streams
from taeda_tensor_core._C import Generator, Tensor

__all__ = ["DeviceModule", "get_device_module"]


class DeviceModule(ModuleType):
    """One kind of device, there or not; ``taeda.get_device_module(name)`` makes it.

    What only asks or prepares (`is_available`, `device_count`, seeding, `empty_cache`) can be called without such a
    device; everything else then says what is missing.

    Example:
        >>> device = "xpu" if taeda.xpu.is_available() else "cpu"
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"taeda.{name}", f"Devices of the kind {name!r}.")
        self._device = name
        self.__path__: list[str] = []  # it has modules, such as `amp`

    def __getattr__(self, name: str) -> Any:
        from taeda_tensor_core import _device_names

        return _device_names.find(self, name)

    def __repr__(self) -> str:
        return f"<devices {self._device!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return get_device_module, (self._device,)  # functions that use it are sent to other processes

    def is_available(self) -> bool:
        """Whether there is such a device; why its plug-in failed says `taeda.backends.failures`."""
        return self.device_count() > 0

    def device_count(self) -> int:
        """How many there are; 0 without a working plug-in."""
        return backends.device_count(self._device) if _works(self._device) else 0

    def is_initialized(self) -> bool:
        """Whether the kind's plug-in has been loaded, and works."""
        return self._device in backends.names()

    def init(self) -> None:
        """Load the kind's plug-in.

        Raises:
            RuntimeError: There is none, or it fails.
        """
        _C._device_count(self._device)

    def set_device(self, device: Any) -> None:
        """Make one the device that the kind's bare name stands for on this thread; a negative index changes nothing.

        Raises:
            RuntimeError: There is no such device.
        """
        index = device if isinstance(device, int) else _C.device(device).index or 0
        if index >= 0:
            _C._set_current_device(self._device, index)

    def current_device(self) -> int:
        """Index of the device that the kind's bare name stands for on this thread."""
        return _C._current_device(self._device)

    def get_device_properties(self, device: Any = None) -> dict[str, Any]:
        """Facts about one of them, as `taeda.backends.properties`."""
        return backends.properties(self._one(device))

    def get_device_name(self, device: Any = None) -> str:
        """What one of them calls itself."""
        return self.get_device_properties(device)["name"]

    def synchronize(self, device: Any = None) -> None:
        """Wait until a device has done all its work; errors of that work come out here."""
        _C.synchronize(self._one(device))

    def empty_cache(self) -> None:
        """Give memory that is kept for reuse back to the system."""
        if self.is_available():
            _C._empty_device_cache(self._device)

    def manual_seed(self, seed: int) -> None:
        """Start the default generator's numbers from `seed`."""
        if self.is_available():
            self.default_generator().manual_seed(seed)

    manual_seed_all = manual_seed

    def seed(self) -> None:
        """Start the default generator's numbers from the system's entropy."""
        if self.is_available():
            self.default_generator().seed()

    seed_all = seed

    def initial_seed(self) -> int:
        """Seed of the default generator."""
        return self.default_generator().initial_seed()

    def get_rng_state_all(self) -> list[Tensor]:
        """States of the default generators of all devices of the kind."""
        return [random.get_rng_state(f"{self._device}:{i}") for i in range(self.device_count())]

    def set_rng_state_all(self, new_states: Iterable[Tensor]) -> None:
        """Go back to states that get_rng_state_all gave."""
        for index, state in enumerate(new_states):
            random.set_rng_state(state, f"{self._device}:{index}")

    def default_generator(self) -> Generator:
        """The generator that operators on the device use when none is given."""
        return random.generator_of(self._device)

    def get_rng_state(self, device: Any = None) -> Tensor:
        """State of the default generator, a uint8 tensor."""
        return random.get_rng_state(self._one(device))

    def set_rng_state(self, new_state: Tensor, device: Any = None) -> None:
        """Go back to a state that get_rng_state gave."""
        random.set_rng_state(new_state, self._one(device))

    def current_stream(self, device: Any = None) -> streams.Stream:
        """This thread's current stream."""
        return streams.current_stream(self._one(device))

    def set_stream(self, stream: streams.Stream) -> None:
        """Make a stream this thread's current one."""
        streams.set_stream(stream)

    def stream(self, stream: streams.Stream | None) -> AbstractContextManager:
        """Context in which a stream is the current one; None changes nothing."""
        return nullcontext() if stream is None else stream

    def _one(self, device: Any) -> Any:
        if device is None:
            return self._device
        return f"{self._device}:{device}" if isinstance(device, int) else device


_modules: dict[str, DeviceModule] = {}


def get_device_module(device: Any = None) -> DeviceModule:
    """The module of a kind of device.

    Args:
        device: Device or its name: a reserved one, one that is there, or one that an installed plug-in offers. None
            stands for the accelerator, else the cpu.

    Raises:
        RuntimeError: Nobody knows such a device.

    Example:
        >>> taeda.get_device_module("cpu").device_count()
        1
    """
    if device is None:
        from taeda_tensor_core import accelerator

        device = accelerator.current_accelerator() or "cpu"
    name = str(device).partition(":")[0]
    if name not in _modules:
        if not _known(name):
            _C._device_count(name)  # raises, with the names that are known
        _modules[name] = DeviceModule(name)
    return _modules[name]


def _known(name: str) -> bool:
    if name in _C._reserved_devices() or name in backends.names():
        return True
    return _is_offered(name)


def _is_offered(name: str) -> bool:
    return any(point.name == name for point in _plugins.offered())


def _works(name: str) -> bool:
    """Whether the device's plug-in is there and loads; `backends.failures` keeps what went wrong."""
    if name not in backends.names() and (_plugins.is_known_to_fail(name) or not _is_offered(name)):
        return False  # the error's sentence, which names all plug-ins, takes long
    try:
        _C._device_count(name)
    except RuntimeError:
        return False
    return True
