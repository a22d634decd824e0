"""profile: a block whose operators, blocks and memory are recorded, and what can be made of it."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from taeda_profiler import chrome, memory_line, pages
from taeda_profiler._recorder import DEFAULT_MB, Recording
from taeda_profiler.averages import EventList
from taeda_profiler.flop_counter import flop_registry
from taeda_profiler.marks import record_function
from taeda_profiler.results import Results
from taeda_profiler.schedules import ProfilerAction, ProfilerActivity, always
from taeda_profiler.trace import Trace
from taeda_registry import files
from taeda_registry.slots import tensor

__all__ = ["kineto_available", "profile", "supported_activities", "tensorboard_trace_handler"]


def kineto_available() -> bool:
    """True: programs ask whether `profile` is there. The recorder is taeda's own, not Kineto."""
    return True


def supported_activities() -> set[ProfilerActivity]:
    """Whose work can be recorded: the host's, and as `ProfilerActivity.PrivateUse1` that of devices which tell it.

    Where there is a CUDA device its work has its own name, `ProfilerActivity.CUDA`.
    """
    device = getattr(tensor, "get_device_module", None)
    there = device is not None and device("cuda").is_available()
    return {ProfilerActivity.CPU, ProfilerActivity.PrivateUse1} | (
        {ProfilerActivity.CUDA} if there else set()
    )


class Recorded:
    """Starting, stopping, and showing what was recorded: what `profile` here and in ``autograd.profiler`` share."""

    def __init__(
        self,
        *,
        record_shapes: bool,
        profile_memory: bool,
        with_stack: bool,
        with_flops: bool,
        with_modules: bool,
        devices: bool,
        max_mb: float,
    ) -> None:
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self._devices = devices
        self._max_mb = max_mb
        self._recording: Recording | None = None
        self._results: Results | None = None
        self._earlier: list[Results] = []  # of former cycles, where they are kept
        self._keeps_earlier = False
        self._facts: dict[str, Any] = {}
        self._new_recording()  # wrong options are told at once

    def _new_recording(self) -> Recording:
        return Recording(
            shapes=self.record_shapes,
            memory=self.profile_memory,
            stacks=self.with_stack,
            devices=self._devices,
            modules=self.with_modules,
            whole=[name for name in flop_registry if isinstance(name, str)] if self.with_flops else (),
            max_mb=self._max_mb,
        )

    def _begin(self) -> None:
        self._recording = recording = self._new_recording()
        try:
            recording.start()
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """What was begun ends, and nobody is given it."""
        recording, self._recording = self._recording, None
        if recording is not None and recording.running:
            recording.stop()

    def _end(self, keep: bool = True) -> None:
        recording = self._recording
        if recording is None:
            return
        try:
            trace = recording.stop()
        except BaseException:
            self._abandon()
            raise
        self._recording = None
        if not keep:
            return
        if trace.dropped:
            warnings.warn(
                f"profile: {trace.dropped} events were dropped: {len(trace)} took the {self._max_mb} MB that argument "
                "'max_mb' allows; give more, or record fewer steps with a schedule",
                RuntimeWarning,
                stacklevel=3,
            )
        if trace.activities.failed:
            warnings.warn(
                f"profile: what devices did is not known: {trace.activities.failed}",
                RuntimeWarning,
                stacklevel=3,
            )
        if self._keeps_earlier and self._results is not None:
            self._earlier.append(self._results)
        self._results = Results(
            trace,
            shapes=self.record_shapes,
            memory=self.profile_memory,
            flops=self.with_flops,
            export=self.export_chrome_trace,
        )

    def _found(self, what: str) -> Results:
        if self._results is None:
            raise AssertionError(
                f"{what}: nothing has been recorded; the profile has not run to its end, "
                "or no step of its schedule was active"
            )
        return self._results

    @property
    def trace(self) -> Trace:
        """What was recorded, in columns.

        Raises:
            AssertionError: Nothing was.
        """
        return self._found("trace").trace

    def events(self) -> EventList:
        """Every event by itself; of a long trace `key_averages` is the quicker way.

        Raises:
            AssertionError: Nothing was recorded.
        """
        last = self._found("events")
        return last.events_after(self._earlier) if self._earlier else last.events()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Events of one name summed up.

        Args:
            group_by_input_shape: Sum up only what has the same shapes.
            group_by_stack_n: Sum up only what has the same innermost so many lines of the program.
            group_by_overload_name: Accepted; overloads of an operator are not told apart.

        Raises:
            AssertionError: Nothing was recorded.

        Example:
            >>> with taeda.profiler.profile() as prof:
            ...     _ = taeda.ones(3) + 1
            >>> [row.key for row in prof.key_averages() if row.count == 1][:2]
            ['aten::ones', 'aten::fill_']
        """
        last = self._found("key_averages")
        if self._earlier:
            return last.events_after(self._earlier).key_averages(group_by_input_shape, group_by_stack_n)
        return last.key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the trace for Perfetto (https://ui.perfetto.dev) and chrome://tracing; packed if `path` ends in ".gz".

        Raises:
            AssertionError: Nothing was recorded.
            OSError: The file cannot be written.
        """
        chrome.export(self._found("export_chrome_trace"), path, self._facts)

    def export_html(self, path: str, title: str = "taeda profile") -> None:
        """Writes one page that needs nothing else: lanes, memory, flame graph and table, for any browser.

        Raises:
            AssertionError: Nothing was recorded.
            OSError: The file cannot be written.
        """
        text = pages.page(self._found("export_html"), title)
        with files.replacing_text(path) as file:
            file.write(text)

    def plot(self, row_limit: int = 10, title: str = "") -> Any:
        """A picture: lanes of threads and streams over time, the memory in use if recorded, and the costliest names.

        Args:
            row_limit: Names to show.
            title: A text above.

        Returns:
            The `matplotlib.figure.Figure`; its ``savefig`` writes it.

        Raises:
            AssertionError: Nothing was recorded.
            ImportError: There is no matplotlib.
            ValueError: `row_limit` is not positive.

        Example:
            >>> with taeda.profiler.profile(profile_memory=True) as prof:
            ...     _ = taeda.ones(2, 3) @ taeda.ones(3, 4)
            >>> prof.plot().savefig("profile.png")  # doctest: +SKIP
        """
        from taeda_profiler import plots

        return plots.figure(self._found("plot"), row_limit, title)

    def _repr_html_(self) -> str | None:
        """What notebooks show; None before the end."""
        return None if self._results is None else pages.frame(self._results)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes places of the program with what was spent there, for flame graphs: "outer;inner 12" in microseconds.

        Raises:
            AssertionError: Nothing was recorded.
            ValueError: There is no such metric.
        """
        self._found("export_stacks").events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes the bytes in use over time: a JSON list of [times, sizes], or each use where `path` ends in
        ".raw.json" or ".raw.json.gz". `export_html` shows the curve.

        Args:
            path: Where to; ".gz" packs it.
            device: "cpu" (the default) or "device" for all others.

        Raises:
            AssertionError: Nothing was recorded, or memory was not.
            ValueError: There is no such device.
        """
        if not self.profile_memory:
            raise AssertionError(
                "export_memory_timeline: memory was not recorded; use profile(profile_memory=True)"
            )
        memory_line.export(self._found("export_memory_timeline").trace, path, device)


class profile(Recorded):
    """A block whose operators, marked blocks and memory are recorded.

    Recording sees all threads of Python, also those that started before it. At most one profile records at a time.

    Args:
        activities: Whose work. The host's is always recorded; any other activity than `ProfilerActivity.CPU` stands for
            all devices that can tell what they do. By default all is recorded.
        schedule: What to do in each step, as `schedule` makes it; steps end with `step`. Without one all is recorded.
        on_trace_ready: Called with the profile at the end of each cycle of the schedule, or at the end.
        record_shapes: Keep shapes and dtypes of arguments.
        profile_memory: Record what tensors take and give back.
        with_stack: Keep the place in the program.
        with_flops: Count floating-point operations.
        with_modules: Record the forward of each module.
        acc_events: Let `events` and `key_averages` tell of all cycles of the schedule so far, not of the last alone.
        experimental_config, execution_trace_observer, use_cuda, custom_trace_id_callback,
        post_processing_timeout_s: Accepted for programs written for PyTorch.
        max_mb: Room for events; what does not fit is dropped, counted and warned of.

    Raises:
        RuntimeError: Another profile records already, on start.

    Example:
        >>> with taeda.profiler.profile(record_shapes=True) as prof:
        ...     _ = taeda.ones(2, 3) @ taeda.ones(3, 4)
        >>> table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        max_mb: float = DEFAULT_MB,
    ) -> None:
        self.activities = set(supported_activities() if activities is None else activities)
        if not self.activities:
            raise AssertionError("profile: argument 'activities' names none")
        super().__init__(
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            devices=self.activities != {ProfilerActivity.CPU},
            max_mb=max_mb,
        )
        self._keeps_earlier = acc_events
        self.schedule = always if schedule is None else schedule
        self._in_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._step_mark: record_function | None = None
        self._trace_id = custom_trace_id_callback

    def __enter__(self) -> profile:
        try:
            self.start()
        except BaseException:  # Ctrl-C may come when it has begun
            self._abandon()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.stop()
        except BaseException:  # what it was to be told may have failed, or Ctrl-C come before its end
            self._abandon()
            raise

    def start(self) -> None:
        """Begins with step 0.

        Raises:
            RuntimeError: Another profile records already.
        """
        try:
            self._go_to(ProfilerAction.NONE, self.current_action)
            self._mark_step()
        except BaseException:  # its block is not entered, so that nobody would stop it
            self._end_mark()
            self._abandon()
            raise

    def stop(self) -> None:
        """Ends; what was recorded is handed to `on_trace_ready`."""
        self._end_mark()
        self._go_to(self.current_action, None)

    def step(self) -> None:
        """The next step of the program begins."""
        self._end_mark()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._go_to(before, self.current_action)
        self._mark_step()

    def _mark_step(self) -> None:
        if self._in_steps or self.step_num:
            self._step_mark = record_function(f"ProfilerStep#{self.step_num}")
            self._step_mark.__enter__()

    def _end_mark(self) -> None:
        mark, self._step_mark = self._step_mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _go_to(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """From what one step does to what the next does; None is the end."""
        records = before in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if before is ProfilerAction.RECORD_AND_SAVE or (
            records and after is not ProfilerAction.RECORD and after is not ProfilerAction.RECORD_AND_SAVE
        ):
            self._end()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
            before = ProfilerAction.NONE
        if before is ProfilerAction.WARMUP and after is not ProfilerAction.WARMUP:
            self._end(keep=False)
            before = ProfilerAction.NONE
        if before is ProfilerAction.NONE and after not in (None, ProfilerAction.NONE):
            self._begin()

    # --- facts beside the events ---

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to exported traces."""
        self._facts[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON value to exported traces.

        Raises:
            ValueError: `value` is no JSON.
        """
        self._facts[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def get_trace_id(self) -> str | None:
        """What `custom_trace_id_callback` gives; None without one."""
        return None if self._trace_id is None else self._trace_id()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Accepted; what is recorded does not change within a step."""


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[profile], None]:
    """A function for `on_trace_ready` that writes each trace into a folder as TensorBoard's plug-in expects them.

    Args:
        dir_name: The folder; it is made where there is none.
        worker_name: Stands in names of files; by default host and process.
        use_gzip: Pack the files.
        use_python_export: Accepted.

    Raises:
        RuntimeError: The folder cannot be made, when a trace is written.

    Example:
        >>> handler = taeda.profiler.tensorboard_trace_handler("runs")
    """

    def write(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(
                f"tensorboard_trace_handler: cannot make folder {dir_name!r}: {error}"
            ) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write
