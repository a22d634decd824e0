"""Writers of event files, with the arguments of PyTorch's."""

from __future__ import annotations

import os
import socket
import time
import warnings
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from taeda.utils.tensorboard import summary as made

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """An event file in a folder, which gets summaries and other events.

    Args:
        log_dir: The folder, which is made.
        max_queue: Events that may wait before one is written.
        flush_secs: Seconds after which they are written at the latest.
        filename_suffix: End of the file's name.
    """

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        self.event_writer = EventFileWriter(os.fspath(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()  # type: ignore[no-any-return]

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Write an event, with its step and time (seconds since 1970; None: now)."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a summary."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Write a graph and what was measured of it, as messages."""
        graph, measured = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        run = event_pb2.TaggedRunMetadata(tag="step1", run_metadata=measured.SerializeToString())
        self.add_event(Event(tagged_run_metadata=run), None, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Go on after `close`, in the same file."""
        self.event_writer.reopen()


def _default_bins() -> np.ndarray:
    """Edges from 1e-12 on, each a tenth beyond the one before, on both sides of zero: TensorFlow's buckets."""
    count = int(np.ceil(np.log(1e32) / np.log(1.1)))
    side = 1e-12 * 1.1 ** np.arange(count)
    return np.concatenate([-side[::-1], [0.0], side])


class SummaryWriter:
    """Writes what TensorBoard shows into event files of a folder.

    Args:
        log_dir: The folder; None: ``runs/<month><day>_<time>_<host><comment>``.
        comment: End of that name; of no effect with `log_dir`.
        purge_step: Events from this step on, which an earlier run that broke off wrote, are not shown.
        max_queue: Events that may wait before one is written.
        flush_secs: Seconds after which they are written at the latest.
        filename_suffix: End of the files' names.

    Steps are ints; `walltime` is in seconds since 1970, None the present. Tensors may be on any device.

    Example:
        >>> with SummaryWriter("runs/first") as writer:
        ...     writer.add_scalar("loss", 0.5, global_step=1)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            log_dir = Path("runs", f"{datetime.now():%b%d_%H-%M-%S}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] = {}
        self._get_file_writer()
        self.default_bins = _default_bins()

    def _get_file_writer(self) -> FileWriter:
        """The writer of the folder itself, made anew after `close`."""
        if self.file_writer is None or not self.all_writers:
            self.file_writer = FileWriter(self.log_dir, *self._options)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                step, self.purge_step = self.purge_step, None
                self.file_writer.add_event(Event(step=step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=step, session_log=SessionLog(status=SessionLog.START)))
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def _add(self, summary: Any, global_step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """The settings of a run and what it reached, in a folder of its own (see `summary.hparams`)."""
        summaries = made.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as run:
            for summary in summaries:
                run._get_file_writer().add_summary(summary)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number."""
        summary = made.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._add(summary, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Several numbers in one chart: each in a file of its own, since curves of one file do not share a chart."""
        walltime = time.time() if walltime is None else walltime
        self._get_file_writer()
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, *self._options)
            self.all_writers[folder].add_summary(made.scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """The numbers of a tensor."""
        self._add(made.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How the numbers of a tensor are distributed (see `summary.histogram`; 'tensorflow': its buckets)."""
        bins = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(made.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that was counted elsewhere."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"add_histogram_raw: {len(bucket_limits)} limits do not go with {len(bucket_counts)} counts"
            )
        summary = made.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(summary, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture: bytes, or floating-point numbers from 0 to 1."""
        self._add(made.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Pictures side by side."""
        self._add(made.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """A picture with rectangles of shape (n, 4): left, top, right, bottom; `labels`: n texts, or one."""
        labels = [labels] if isinstance(labels, str) else labels
        boxes = made.make_np(box_tensor)
        if labels is not None and len(labels) != len(boxes):
            labels = None
        summary = made.image_boxes(tag, img_tensor, boxes, rescale, dataformats, labels)
        self._add(summary, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of matplotlib, or a list of them; they are closed afterwards."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        drawn = []
        for one in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            drawn.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(one)
        self.add_images(tag, np.stack(drawn), global_step, walltime, dataformats="NHWC")

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: int = 4,
        walltime: float | None = None,
    ) -> None:
        """Moving pictures of shape (batch, frames, colours, height, width)."""
        self._add(made.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Sound between -1 and 1, `sample_rate` numbers a second."""
        self._add(made.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Text, which is shown as Markdown."""
        self._add(made.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision and recall of predictions of binary labels."""
        self._add(made.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision and recall that were counted elsewhere."""
        counts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        summary = made.pr_curve_raw(tag, *counts, precision, recall, num_thresholds, weights)
        self._add(summary, global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, dict[str, list[Any]]]) -> None:
        """Which charts are shown together (see `summary.custom_scalars`)."""
        self._add(made.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of several curves."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A curve between two others: tags of the value, of the lower and of the upper one."""
        if len(tags) != 3:
            raise ValueError(f"add_custom_scalars_marginchart: expected 3 tags, found {len(tags)}")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_embedding(
        self,
        mat: Any,
        metadata: list[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: list[str] | None = None,
    ) -> None:
        """Points of shape (n, d) for the projector, with a label or a row of labels each; `label_img` is not drawn."""
        from google.protobuf import text_format
        from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

        points = made.make_np(mat)
        if points.ndim != 2:
            raise ValueError(f"add_embedding: argument 'mat' has shape {points.shape}, expected (n, d)")
        if metadata is not None and len(metadata) != len(points):
            raise ValueError(f"add_embedding: {len(metadata)} labels do not go with {len(points)} points")
        if label_img is not None:
            warnings.warn("add_embedding: pictures of points are not written", UserWarning, stacklevel=2)
        place = f"{0 if global_step is None else global_step:05}/{tag}"
        folder = Path(self.log_dir, place)
        folder.mkdir(parents=True, exist_ok=True)
        np.savetxt(folder / "tensors.tsv", points, delimiter="\t")
        config_file = Path(self.log_dir, "projector_config.pbtxt")
        config = ProjectorConfig()
        if config_file.exists():
            text_format.Parse(config_file.read_text(encoding="utf-8"), config)
        entry = config.embeddings.add(tensor_name=f"{tag}:{place[:5]}", tensor_path=f"{place}/tensors.tsv")
        if metadata is not None:
            rows = [metadata_header, *metadata] if metadata_header else metadata
            lines = ["\t".join(map(str, row)) if metadata_header else str(row) for row in rows]
            folder.joinpath("metadata.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
            entry.metadata_path = f"{place}/metadata.tsv"
        config_file.write_text(text_format.MessageToString(config), encoding="utf-8")

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Write the graph of one call of a module.

        Args:
            model: The module.
            input_to_model: A tensor, or a tuple of its arguments.
            verbose: Print the graph.
            use_strict_trace: Of no effect: containers of results are always followed.

        Raises:
            TypeError: The model is no module.
        """
        from taeda.utils.tensorboard._graph import graph

        self._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Raises NotImplementedError: graphs are not written."""
        raise NotImplementedError("add_onnx_graph: graphs are not written")

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: dict[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write bodies of triangles, or clouds of points.

        Args:
            tag: Name.
            vertices: (batch, points, 3) places.
            colors: (batch, points, 3) numbers from 0 to 255.
            faces: (batch, triangles, 3) numbers of points; without them points are shown.
            config_dict: Settings of camera, light and material, as three.js names them.
            global_step: Number of the step.
            walltime: Seconds since 1970; now by default.

        Raises:
            ValueError: One of them has another shape.
        """
        self._add(made.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def flush(self) -> None:
        """Write what waits."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Write what waits and close the files; what is added later begins a new one."""
        for writer in self.all_writers.values():
            writer.close()
        self.file_writer, self.all_writers = None, {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
