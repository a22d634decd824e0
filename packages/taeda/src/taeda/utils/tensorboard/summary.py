"""Values as the summaries that an event file holds.

The formats are TensorBoard's: https://github.com/tensorflow/tensorboard/tree/master/tensorboard/compat/proto and the
`plugin_data.proto` of each plug-in. Tensors are read on the host; NumPy arrays and numbers are taken as they are.
"""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_DOUBLE, DT_FLOAT, DT_STRING

__all__ = [
    "audio", "custom_scalars", "histogram", "histogram_raw", "hparams", "image", "image_boxes", "make_np", "pr_curve",
    "pr_curve_raw", "scalar", "tensor_proto", "text", "video",
]  # fmt: skip


def make_np(x: Any) -> np.ndarray:
    """An array of a tensor, an array, a number or a list of these.

    Raises:
        NotImplementedError: There are no numbers in it.
    """
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        return (x.float() if "float" in str(x.dtype) and x.element_size() < 4 else x).numpy()
    array = np.asarray([make_np(item) for item in x] if isinstance(x, (list, tuple)) else x)
    if array.dtype.kind not in "biufc":
        raise NotImplementedError(
            f"tensorboard: expected a tensor, an array or a number, found {type(x).__name__}"
        )
    return array


def _one(tag: str, **content: Any) -> Summary:
    return Summary(value=[Summary.Value(tag=tag, **content)])


def _of_plugin(name: str, content: Any = None) -> SummaryMetadata:
    data = b"" if content is None else content.SerializeToString()
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=name, content=data))


def _shape(*sizes: int) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False
) -> Summary:
    """One number; in the new style as a tensor of the plug-in `scalars`."""
    array = make_np(tensor)
    if array.size != 1:
        raise ValueError(f"add_scalar: '{name}' has shape {array.shape}, expected one number")
    number = float(array.reshape(()))
    if not new_style:
        return _one(name, simple_value=number)
    if double_precision:
        content = TensorProto(double_val=[number], dtype=DT_DOUBLE)
    else:
        content = TensorProto(float_val=[number], dtype=DT_FLOAT)
    return _one(name, tensor=content, metadata=_of_plugin("scalars"))


def tensor_proto(tag: str, tensor: Any) -> Summary:
    """A tensor's numbers, in float32 or, if it holds such, float64."""
    array = make_np(tensor)
    double = array.dtype == np.float64
    values = {
        "double_val" if double else "float_val": array.reshape(-1).astype(
            np.float64 if double else np.float32
        )
    }
    content = TensorProto(
        dtype=DT_DOUBLE if double else DT_FLOAT, tensor_shape=_shape(*array.shape), **values
    )
    return _one(tag, tensor=content, metadata=_of_plugin("tensor"))


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: float,
    sum: float,
    sum_squares: float,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Summary:
    """A histogram that was counted elsewhere: upper ends of its buckets, and what is in them."""
    return _one(
        name,
        histo=HistogramProto(
            min=min,
            max=max,
            num=num,
            sum=sum,
            sum_squares=sum_squares,
            bucket_limit=[float(x) for x in bucket_limits],
            bucket=[float(x) for x in bucket_counts],
        ),
    )


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Summary:
    """How the numbers are distributed.

    Args:
        name: The tag.
        values: Numbers of any shape, at least one.
        bins: Edges of buckets, or a rule of `numpy.histogram_bin_edges`.
        max_bins: Neighbouring buckets are joined until there are no more than about so many.

    Raises:
        ValueError: There are no numbers.
    """
    numbers = make_np(values).astype(np.float64).reshape(-1)
    if not numbers.size:
        raise ValueError(f"add_histogram: '{name}' has no numbers")
    counts, edges = np.histogram(numbers, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        edges = np.append(edges[:-1:step], edges[-1])
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueError(f"add_histogram: no number of '{name}' lies between the edges of its buckets")
    first, last = filled[0], filled[-1]
    # An empty bucket on the left tells the reader where the first one begins.
    limits, inside = edges[first : last + 2], np.concatenate([[0], counts[first : last + 1]])
    return histogram_raw(
        name, numbers.min(), numbers.max(), numbers.size, numbers.sum(), numbers @ numbers, limits, inside
    )


def _as_rows(array: np.ndarray, layout: str) -> np.ndarray:
    """Images in any layout as one of height, width and three colours; a batch becomes a grid."""
    layout = layout.upper()
    if (
        len(layout) != array.ndim
        or len(set(layout)) != len(layout)
        or not set("HW") <= set(layout) <= set("NCHW")
    ):
        raise ValueError(
            f"tensorboard: an image of shape {array.shape} does not go with dataformats={layout!r}"
        )
    for missing in set("NC") - set(layout):
        array, layout = array[None], missing + layout
    batch = array.transpose([layout.index(letter) for letter in "NHWC"])
    if batch.shape[-1] == 1:
        batch = np.repeat(batch, 3, axis=-1)
    count, height, width, colours = batch.shape
    columns = min(count, 8)
    grid = np.zeros((-(-count // columns) * columns, height, width, colours), batch.dtype)
    grid[:count] = batch
    return (
        grid.reshape(-1, columns, height, width, colours).swapaxes(1, 2).reshape(-1, columns * width, colours)
    )


def _bytes(array: np.ndarray) -> np.ndarray:
    """Colours from 0 to 255; floating-point ones are from 0 to 1."""
    return (array if array.dtype == np.uint8 else (array * 255.0).clip(0, 255)).astype(np.uint8)


def _encoded(pixels: np.ndarray, rescale: float = 1) -> Any:
    from PIL import Image

    height, width, colours = pixels.shape
    made = Image.fromarray(pixels)
    if rescale != 1:
        made = made.resize((int(width * rescale), int(height * rescale)))
    file = io.BytesIO()
    made.save(file, format="PNG")
    return Summary.Image(
        height=made.height, width=made.width, colorspace=colours, encoded_image_string=file.getvalue()
    )


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    """A picture, or several side by side, as PNG."""
    return _one(tag, image=_encoded(_bytes(_as_rows(make_np(tensor), dataformats)), rescale))


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Any = None,
) -> Summary:
    """A picture with rectangles (left, top, right, bottom) and their labels."""
    from PIL import Image, ImageDraw

    made = Image.fromarray(_bytes(_as_rows(make_np(tensor_image), dataformats)))
    pen = ImageDraw.Draw(made)
    for i, box in enumerate(make_np(tensor_boxes)):
        pen.rectangle([float(x) for x in box], outline="red", width=2)
        if labels is not None:
            pen.text((float(box[0]), float(box[1])), str(labels[i]), fill="red")
    return _one(tag, image=_encoded(np.asarray(made), rescale))


def video(tag: str, tensor: Any, fps: int = 4) -> Summary:
    """Moving pictures of shape (batch, frames, colours, height, width), side by side, as GIF."""
    from PIL import Image

    clips = make_np(tensor)
    if clips.ndim != 5:
        raise ValueError(
            f"add_video: expected shape (batch, frames, colours, height, width), found {clips.shape}"
        )
    frames = [Image.fromarray(_bytes(_as_rows(clips[:, t], "NCHW"))) for t in range(clips.shape[1])]
    file = io.BytesIO()
    frames[0].save(file, format="GIF", save_all=True, append_images=frames[1:], duration=1000 // fps, loop=0)
    size = {"height": frames[0].height, "width": frames[0].width, "colorspace": clips.shape[2]}
    return _one(tag, image=Summary.Image(encoded_image_string=file.getvalue(), **size))


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """Sound between -1 and 1, one channel, as WAV of 16 bits."""
    samples = make_np(tensor).squeeze()
    if samples.ndim != 1:
        raise ValueError(f"add_audio: expected one channel, found shape {samples.shape}")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes((samples.clip(-1, 1) * np.iinfo(np.int16).max).astype("<i2").tobytes())
    content = {"encoded_audio_string": file.getvalue(), "content_type": "audio/wav"}
    return _one(
        tag,
        audio=Summary.Audio(sample_rate=sample_rate, num_channels=1, length_frames=len(samples), **content),
    )


def text(tag: str, text: str) -> Summary:
    """Text, which is shown as Markdown."""
    from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

    content = TensorProto(dtype=DT_STRING, string_val=[text.encode("utf-8")], tensor_shape=_shape(1))
    return _one(f"{tag}/text_summary", metadata=_of_plugin("text", TextPluginData(version=0)), tensor=content)


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Summary:
    """Precision and recall that were counted elsewhere, by threshold."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

    rows = np.stack([make_np(row).astype(np.float32) for row in (tp, fp, tn, fn, precision, recall)])
    content = TensorProto(
        dtype=DT_FLOAT, float_val=rows.reshape(-1).tolist(), tensor_shape=_shape(*rows.shape)
    )
    about = PrCurvePluginData(version=0, num_thresholds=rows.shape[1])
    return _one(tag, metadata=_of_plugin("pr_curves", about), tensor=content)


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> Summary:
    """Precision and recall of predictions (chances from 0 to 1) of binary labels, at evenly spaced thresholds."""
    num_thresholds = min(num_thresholds, 127)  # what the format takes
    truth = make_np(labels).reshape(-1).astype(bool)
    chances = make_np(predictions).reshape(-1).astype(np.float64)
    weight = (
        np.ones(len(truth)) if weights is None else np.broadcast_to(make_np(weights).reshape(-1), truth.shape)
    )
    place = np.floor(chances * (num_thresholds - 1)).astype(int).clip(0, num_thresholds - 1)
    # Counted from the highest threshold down.
    tp, fp = (
        np.bincount(place[chosen], weight[chosen], num_thresholds)[::-1].cumsum()[::-1]
        for chosen in (truth, ~truth)
    )
    tn, fn = fp[0] - fp, tp[0] - tp
    least = np.finfo(np.float64).tiny
    return pr_curve_raw(tag, tp, fp, tn, fn, tp / np.maximum(least, tp + fp), tp / np.maximum(least, tp + fn))


def mesh(
    tag: str,
    vertices: Any,
    colors: Any = None,
    faces: Any = None,
    config_dict: dict[str, Any] | None = None,
    display_name: str | None = None,
    description: str | None = None,
) -> Summary:
    """Bodies of triangles, or clouds of points.

    Args:
        vertices: (batch, points, 3) places.
        colors: (batch, points, 3) numbers from 0 to 255.
        faces: (batch, triangles, 3) numbers of points.
        config_dict: Settings of camera, light and material, as three.js names them.

    Raises:
        ValueError: One of them has another shape.
    """
    import json

    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    parts = {"vertices": (vertices, MeshPluginData.VERTEX), "faces": (faces, MeshPluginData.FACE)}
    parts["colors"] = (colors, MeshPluginData.COLOR)
    given = {name: (make_np(x), kind) for name, (x, kind) in parts.items() if x is not None}
    there = metadata.get_components_bitmask([kind for _, kind in given.values()])
    settings = json.dumps(config_dict or {}, sort_keys=True)
    made = Summary()
    for name, (array, kind) in given.items():
        if array.ndim != 3 or array.shape[-1] != 3:
            raise ValueError(
                f"add_mesh: argument '{name}' must have shape (batch, number, 3), found {array.shape}"
            )
        about = metadata.create_summary_metadata(
            tag, display_name, kind, there, list(array.shape), description, json_config=settings
        )
        content = TensorProto(
            dtype=DT_FLOAT,
            float_val=array.astype(np.float32).reshape(-1).tolist(),
            tensor_shape=_shape(*array.shape),
        )
        made.value.add(tag=metadata.get_instance_name(tag, kind), tensor=content, metadata=about)
    return made


def custom_scalars(layout: dict[str, dict[str, list[Any]]]) -> Summary:
    """Which charts are shown together: ``{category: {title: ["Multiline" or "Margin", tags]}}``."""
    from tensorboard.plugins.custom_scalar import layout_pb2 as made

    categories = []
    for category, charts in layout.items():
        listed = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                value, lower, upper = tags
                series = made.MarginChartContent.Series(value=value, lower=lower, upper=upper)
                listed.append(made.Chart(title=title, margin=made.MarginChartContent(series=[series])))
            else:
                listed.append(made.Chart(title=title, multiline=made.MultilineChartContent(tag=tags)))
        categories.append(made.Category(title=category, chart=listed))
    content = made.Layout(category=categories).SerializeToString()
    return _one(
        "custom_scalars__config__",
        metadata=_of_plugin("custom_scalars"),
        tensor=TensorProto(dtype=DT_STRING, string_val=[content], tensor_shape=_shape()),
    )


_DOMAINS = {bool: ("DATA_TYPE_BOOL", "bool_value"), str: ("DATA_TYPE_STRING", "string_value")}


def hparams(
    hparam_dict: dict[str, Any],
    metric_dict: dict[str, Any],
    hparam_domain_discrete: dict[str, list[Any]] | None = None,
) -> tuple[Summary, Summary, Summary]:
    """The settings of a run, as the summaries of an experiment, of its start and of its end.

    Args:
        hparam_dict: Settings by name: numbers, strings, truths, tensors of one number; None is left out.
        metric_dict: What is measured, by name.
        hparam_domain_discrete: The values that a setting may have.

    Raises:
        TypeError: An argument is no dictionary, or a domain is no list of its setting's type.
        ValueError: A setting is of another type.
    """
    from tensorboard.plugins.hparams import api_pb2 as api
    from tensorboard.plugins.hparams import metadata
    from tensorboard.plugins.hparams import plugin_data_pb2 as data

    domains = hparam_domain_discrete or {}
    for name, given in (
        ("hparam_dict", hparam_dict),
        ("metric_dict", metric_dict),
        ("hparam_domain_discrete", domains),
    ):
        if not isinstance(given, dict):
            raise TypeError(f"hparams: argument '{name}' must be a dict, found {type(given).__name__}")
    for name, values in domains.items():
        kind = type(hparam_dict.get(name))
        if (
            name not in hparam_dict
            or not isinstance(values, list)
            or not all(isinstance(v, kind) for v in values)
        ):
            raise TypeError(
                f"hparams: hparam_domain_discrete[{name!r}] must be a list of the type of the setting"
            )
    start, infos = data.SessionStartInfo(), []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        if hasattr(value, "detach") or isinstance(value, np.generic):
            value = make_np(value).item()
        if not isinstance(value, (bool, str, int, float)):
            raise ValueError(
                f"hparams: setting {name!r} must be a number, str or bool, found {type(value).__name__}"
            )
        kind, field = _DOMAINS.get(type(value), ("DATA_TYPE_FLOAT64", "number_value"))
        setattr(start.hparams[name], field, value)
        domain = None
        if name in domains:
            domain = struct_pb2.ListValue(values=[struct_pb2.Value(**{field: v}) for v in domains[name]])
        infos.append(api.HParamInfo(name=name, type=api.DataType.Value(kind), domain_discrete=domain))
    metrics = [api.MetricInfo(name=api.MetricName(tag=tag)) for tag in metric_dict]

    def summary(tag: str, **content: Any) -> Summary:
        about = data.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
        return _one(tag, metadata=_of_plugin(metadata.PLUGIN_NAME, about))

    ended = data.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS"))
    experiment = api.Experiment(hparam_infos=infos, metric_infos=metrics)
    return (
        summary(metadata.EXPERIMENT_TAG, experiment=experiment),
        summary(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        summary(metadata.SESSION_END_INFO_TAG, session_end_info=ended),
    )
