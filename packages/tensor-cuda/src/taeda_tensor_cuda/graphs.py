"""Graphs: work of a device that is recorded once and run again by one call; names and meanings are ``torch.cuda``'s.

While work is recorded nothing is computed. Its memory comes from a pool of the graph's own, so that each run writes to
the same addresses: results are read from, and inputs copied to, the tensors of the recording.
"""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

from taeda_tensor_cuda import _library
from taeda_tensor_cuda._graphed import make_graphed_callables

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}
_UNTOLD = (
    "{0}: there is no recording; capture_begin and capture_end make one, or the context taeda.cuda.graph"
)


def _tensor() -> Any:
    from taeda_registry.slots import tensor

    return tensor


def _stream_of_thread() -> tuple[int, int]:
    """Index of the current device, and the handle of the current stream there; 0 is the default stream."""
    stream = _tensor().current_stream("cuda")
    return stream.device.index, stream.stream_id


def is_current_stream_capturing() -> bool:
    """Whether what is put into the current stream is recorded for a graph; False without a device."""
    if not _library.in_use():
        return False
    device, stream = _stream_of_thread()
    return _library.number(None, "capture_of", ctypes.c_uint64, device, stream or None) != 0


def graph_pool_handle() -> tuple[int, int]:
    """A new pool of memory, which graphs may share that never run at the same time.

    Raises:
        RuntimeError: There is no CUDA device.
    """
    _library.start()
    return 0, _library.number(None, "new_pool", ctypes.c_uint64)


class CUDAGraph:
    """Recorded work of a device; `taeda.cuda.graph` records into one.

    Args:
        keep_graph: The recording stays when it has been made ready to run, which `instantiate` or the first `replay`
            does then: it can be drawn, and be made ready again.

    Example:
        >>> g, x = taeda.cuda.CUDAGraph(), taeda.zeros(3, device="cuda")
        >>> with taeda.cuda.graph(g):
        ...     y = x + 1
        >>> _ = x.fill_(2)
        >>> g.replay()
        >>> y.tolist()
        [3.0, 3.0, 3.0]
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._handle: int | None = None
        self._keep, self._debug, self._ready = keep_graph, False, False
        self._recording, self._recorded = False, False
        self._pool: tuple[int, int] | None = None

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:
        """Record what is put into the current stream from now on.

        Args:
            pool: Memory to use, from `graph_pool_handle` or `pool` of another graph; None is a new one.
            capture_error_mode: Which threads may not do what cannot be recorded meanwhile: "global" all of them,
                "thread_local" this one, "relaxed" none.
            check_input_liveness: Must be False: tensors of the recording are not watched.

        Raises:
            RuntimeError: The current stream is the default one, or its work is recorded already; or this graph has a
                recording.
            ValueError: There is no such mode.
        """
        if capture_error_mode not in _MODES:
            raise ValueError(
                f"capture_begin: argument 'capture_error_mode' must be one of {', '.join(map(repr, _MODES))}, "
                f"found {capture_error_mode!r}"
            )
        if check_input_liveness:
            raise NotImplementedError("capture_begin: argument 'check_input_liveness' must be False")
        if self._recording or self._recorded:
            raise RuntimeError("capture_begin: this graph has a recording; reset() does away with it")
        _library.start()
        device, stream = _stream_of_thread()
        if not stream:
            raise RuntimeError(
                "capture_begin: graphs must be captured on a non-default stream; enter a taeda.cuda.Stream, or use "
                "the context taeda.cuda.graph. They can be replayed on the default one"
            )
        self._pool = graph_pool_handle() if pool is None else tuple(pool)  # type: ignore[assignment]
        if self._handle is None:
            self._handle = _library.number(None, "graph_make", ctypes.c_void_p, device)
        number, mode = self._pool[1], _MODES[capture_error_mode]  # type: ignore[index]
        _library.call(None, "graph_begin_capture", self._handle, stream, number, mode)
        self._recording = True

    def capture_end(self) -> None:
        """End the recording and, without `keep_graph`, make it ready to run.

        Raises:
            RuntimeError: Nothing is recorded, or something was called that cannot be; the graph is empty then.
        """
        if not self._recording:
            raise RuntimeError("capture_end: " + _UNTOLD.format("capture_end").partition(": ")[2])
        self._recording = False
        _library.call(None, "graph_end_capture", self._handle)
        self._recorded = True
        if not self._keep:
            self.instantiate()
            if not self._debug:
                _library.call(None, "graph_drop_recording", self._handle)

    def _discard(self) -> None:
        """Ends a recording in which the program failed."""
        self._recording = False
        _library.status_of(None, "graph_end_capture", self._handle)
        self.reset()

    def instantiate(self) -> None:
        """Make what was recorded ready to run.

        Raises:
            RuntimeError: There is no recording.
        """
        self._check_recorded("instantiate")
        if self._ready and not (self._keep or self._debug):
            raise RuntimeError("instantiate: the recording was not kept; make the graph with keep_graph=True")
        _library.call(None, "graph_instantiate", self._handle)
        self._ready = True

    def replay(self) -> None:
        """Put the recorded work into the current stream.

        Raises:
            RuntimeError: There is no recording.
        """
        self._check_recorded("replay")
        if not self._ready:
            self.instantiate()
        _library.call(None, "graph_replay", self._handle, _stream_of_thread()[1] or None)

    def reset(self) -> None:
        """Do without the recording; its memory can be given back once no tensor is in it."""
        if self._recording:
            raise RuntimeError("reset: the graph is being recorded; end that first")
        self._recorded = self._ready = False
        if self._handle is not None:
            _library.call(None, "graph_reset", self._handle)

    def pool(self) -> tuple[int, int]:
        """The graph's memory, for `pool` of other recordings.

        Raises:
            RuntimeError: There is no recording.
        """
        self._check_recorded("pool")
        assert self._pool is not None
        return self._pool

    def enable_debug_mode(self) -> None:
        """Keep what will be recorded, so that `debug_dump` can draw it."""
        self._debug = True

    def debug_dump(self, debug_path: str) -> None:
        """Write the recording to a file, in the language of Graphviz.

        Raises:
            RuntimeError: There is no recording, or it was not kept: neither `keep_graph` nor `enable_debug_mode`.
        """
        self._check_recorded("debug_dump")
        if not (self._keep or self._debug):
            raise RuntimeError("debug_dump: the recording was not kept; call enable_debug_mode() before it")
        _library.call(None, "graph_draw", self._handle, str(debug_path).encode())

    def register_generator_state(self, generator: Any) -> None:
        """Let each run draw numbers of its own from a generator: the device's default one, which always does so.

        Raises:
            NotImplementedError: It is another one.
        """
        defaults = [
            _tensor().get_device_module("cuda").default_generators[index] for index in range(_device_count())
        ]
        if not any(generator is each for each in defaults):
            raise NotImplementedError(
                "register_generator_state: numbers of generators other than the device's default one are not recorded"
            )

    def _check_recorded(self, function: str) -> None:
        if not self._recorded:
            raise RuntimeError(_UNTOLD.format(function))

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            _library.status_of(None, "graph_end", handle)


def _device_count() -> int:
    return _tensor().get_device_module("cuda").device_count()


class graph:
    """Context whose work is recorded into a graph, on a stream of its own.

    Args:
        cuda_graph: Where to.
        pool: Memory to use; see `CUDAGraph.capture_begin`.
        stream: Stream to record on; None is one that all recordings of the device share.
        capture_error_mode: As for `CUDAGraph.capture_begin`.

    Raises:
        RuntimeError: When it ends: something was called that cannot be recorded.
    """

    default_capture_stream: Any = None
    _streams: ClassVar[dict[int, Any]] = {}

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: tuple[int, int] | None = None,
        stream: Any = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:
        self.cuda_graph, self.pool = cuda_graph, pool
        self.capture_error_mode, self.check_input_liveness = capture_error_mode, check_input_liveness
        self.capture_stream = self._shared_stream() if stream is None else stream

    @classmethod
    def _shared_stream(cls) -> Any:
        _library.start()
        index = _tensor().get_device_module("cuda").current_device()
        if index not in cls._streams:
            cls._streams[index] = _tensor().Stream(f"cuda:{index}")
        cls.default_capture_stream = cls._streams[index]
        return cls._streams[index]

    def __enter__(self) -> None:
        kind = _tensor().get_device_module("cuda")
        kind.synchronize()
        kind.empty_cache()  # the pool's segments find room
        self.capture_stream.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode, self.check_input_liveness)
        except BaseException:
            self.capture_stream.__exit__()
            raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if error is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph._discard()
        finally:
            self.capture_stream.__exit__(kind, error, trace)
