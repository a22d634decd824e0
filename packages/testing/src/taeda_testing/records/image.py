"""Records of operators on images: sampling point by point, windows one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, FLOATS, NUMBERS, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import calls
from taeda_testing.wrong import misfit, zeros

# --- points of a grid ---


def _keys(x: float) -> float:
    x, a = abs(x), -0.75
    return (a + 2) * x**3 - (a + 3) * x**2 + 1 if x < 1 else a * (x**3 - 5 * x**2 + 8 * x - 4)


def _inside(x: float, size: int, padding: int, align: bool) -> float:
    if padding == 2:
        low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
        if span == 0:
            return 0.0
        away = (x - low) % (2 * span)
        x = low + min(away, 2 * span - away)
    return x if padding == 0 else min(max(x, 0.0), size - 1.0)


def _axis(x: float, size: int, mode: int, padding: int, align: bool) -> list[tuple[int, float]]:
    """Elements of one dimension with their weights, those outside left out."""
    x = (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2
    if mode == 2:
        left = int(np.floor(x))
        near = [(_inside(left + k, size, padding, align), _keys(x - left - k)) for k in range(-1, 3)]
    else:
        x = _inside(x, size, padding, align)
        left = int(np.floor(x))
        near = [(float(np.round(x)), 1.0)] if mode == 1 else [(left, 1 - (x - left)), (left + 1, x - left)]
    return [(int(at), weight) for at, weight in near if 0 <= at < size]


def _point(image: np.ndarray, point: np.ndarray, *how: Any) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Indices of elements of (C, ...), and their weights."""
    axes = [_axis(float(x), size, *how) for x, size in zip(point[::-1], image.shape[1:], strict=True)]
    for choice in itertools.product(*axes):
        yield (slice(None), *(at for at, _ in choice)), float(np.prod([weight for _, weight in choice]))


def _sampled(x: np.ndarray, grid: np.ndarray, *how: Any) -> np.ndarray:
    x64 = x.astype(np.float64)
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *place in np.ndindex(*grid.shape[:-1]):
        for at, weight in _point(x64[n], grid[(n, *place)], *how):
            out[(n, slice(None), *place)] += weight * x64[n][at]
    return out.astype(x.dtype)


def _sampled_backward(grad: np.ndarray, x: np.ndarray, grid: np.ndarray, *rest: Any) -> tuple[Any, Any]:
    """The adjoint of sampling, and central differences along the coordinates of the points."""
    *how, mask = rest if len(rest) == 4 else (*rest, 3)
    x64, g64, points = (a.astype(np.float64) for a in (x, grad, grid))
    of_x, of_grid, step = np.zeros(x.shape), np.zeros(grid.shape), 1e-6
    for n, *place in np.ndindex(*grid.shape[:-1]):
        above = g64[(n, slice(None), *place)]
        for at, weight in _point(x64[n], points[(n, *place)], *how):
            of_x[n][at] += weight * above
        for d in range(grid.shape[-1]):
            sides = []
            for moved in (step, -step):
                point = points[(n, *place)].copy()
                point[d] += moved
                sides.append(sum(weight * (above @ x64[n][at]) for at, weight in _point(x64[n], point, *how)))
            of_grid[(n, *place, d)] = (sides[0] - sides[1]) / (2 * step)
    return of_x.astype(x.dtype) if mask & 1 else None, of_grid.astype(x.dtype) if mask & 2 else None


_IMAGES = (
    *(((2, 3, 4, 5), (2, 3, 2, 2), mode, padding, align)
      for mode in (0, 1, 2) for padding in (0, 1, 2) for align in (False, True)),
    *(((1, 2, 3, 4, 5), (1, 2, 3, 2, 3), mode, padding, align)
      for mode in (0, 1) for padding in (0, 1, 2) for align in (False, True)),
    ((1, 1, 1, 3), (1, 2, 2, 2), 0, 2, True),
    ((0, 2, 3, 3), (0, 2, 2, 2), 0, 0, False),
    ((1, 2, 3, 3), (1, 0, 2, 2), 0, 0, False),
    ((1, 2, 9, 8), (1, 30, 20, 2), 0, 1, False),
)  # fmt: skip


def _points(
    rng: np.random.Generator, shape: tuple[int, ...], image: tuple[int, ...], dtype: str
) -> np.ndarray:
    """Points in and around the image, away from borders between pixels, where there is no derivative."""
    sizes = np.array(image[:1:-1])
    places = rng.integers(-1, sizes + 1, shape) + rng.uniform(0.1, 0.4, shape)
    return ((places + 0.5) / sizes * 2 - 1).astype(dtype)


def _grids(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for image, grid, *how in _IMAGES:
        # With aligned corners the same points lie elsewhere: at 0.1 to 0.4 of what is then a pixel.
        points = _points(rng, grid, image, "float64")
        if how[-1]:
            sizes = np.maximum(np.array(image[:1:-1]) - 1, 1)
            points = (np.floor((points + 1) / 2 * sizes) + rng.uniform(0.1, 0.4, grid)) / sizes * 2 - 1
        yield Sample((random_array(rng, image, dtype), points.astype(dtype), *how))


def _of_rank(samples: Any, rank: int) -> Any:
    """The samples whose first argument has so many dimensions."""
    return lambda dtype, rng: (s for s in samples(dtype, rng) if s.args[0].ndim == rank)


def _grid_gradients(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in _grids(dtype, rng):
        x, grid = sample.args[:2]
        grad = random_array(rng, (*x.shape[:2], *grid.shape[1:-1]), dtype)
        yield Sample((grad, *sample.args))


_GRID_ERRORS = (
    *misfit("grid_sampler", (1, 2, 3), (1, 2, 2), 0, 0, False, words=("input", "(1, 2, 3)")),
    *misfit("grid_sampler", (1, 2, 3, 3), (2, 2, 2, 2), 0, 0, False, words=("grid", "(2, 2, 2, 2)")),
    *misfit("grid_sampler", (1, 2, 3, 3), (1, 2, 2, 3), 0, 0, False, words=("grid", "3")),
    *misfit("grid_sampler", (1, 2, 0, 3), (1, 2, 2, 2), 0, 0, False, words=("input", "0")),
    *misfit("grid_sampler", (1, 1, 2, 2, 2), (1, 1, 1, 1, 3), 2, 0, False, words=("bicubic",)),
    *misfit(
        "grid_sampler",
        (1, 2, 3, 3),
        zeros(1, 2, 2, 2, dtype=np.float64),
        0,
        0,
        False,
        words=("grid", "float64"),
    ),
    *misfit("grid_sampler", (1, 2, 3, 3), (1, 2, 2, 2), 5, 0, False, words=("interpolation_mode", "5")),
)


def _affine(theta: np.ndarray, size: Any, align: bool) -> np.ndarray:
    space = size[2:]
    lines = [np.linspace(-1, 1, n) if align else (2 * np.arange(n) + 1) / n - 1 for n in space]
    lines = [line if n > 1 else np.zeros(1) for line, n in zip(lines, space, strict=True)]
    points = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(space)], -1)
    return np.einsum("...k,nik->n...i", points, theta.astype(np.float64)).astype(theta.dtype)


# --- windows as columns ---


def _places(size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> np.ndarray:
    """(elements of the window, positions): indices into the padded plane."""
    high, wide = (s + 2 * p for s, p in zip(size, padding, strict=True))
    counts = [
        (n - d * (k - 1) - 1) // t + 1
        for n, d, k, t in zip((high, wide), dilation, kernel, stride, strict=True)
    ]
    rows = [
        [
            (y * stride[0] + i * dilation[0]) * wide + x * stride[1] + j * dilation[1]
            for y, x in np.ndindex(*counts)
        ]
        for i, j in np.ndindex(*kernel)
    ]
    return np.array(rows)


def _im2col(x: np.ndarray, *window: Any) -> np.ndarray:
    padding = window[2]
    edges = [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding]
    planes = np.pad(x, edges)
    planes = planes.reshape(*planes.shape[:-2], planes.shape[-2] * planes.shape[-1])
    columns = planes[..., _places(x.shape[-2:], *window)]
    return columns.reshape(*x.shape[:-3], x.shape[-3] * columns.shape[-2], columns.shape[-1])


def _col2im(columns: np.ndarray, size: Any, *window: Any) -> np.ndarray:
    kernel, _, padding, _ = window
    places = _places(size, *window)
    high, wide = (s + 2 * p for s, p in zip(size, padding, strict=True))
    lead = (*columns.shape[:-2], columns.shape[-2] // (kernel[0] * kernel[1]))
    whole = np.zeros(
        (*lead, high * wide),
        {"f": np.float64, "c": np.complex128, "u": np.uint64}.get(columns.dtype.kind, np.int64),
    )
    given = columns.reshape(*lead, places.size)
    for at, value in zip(places.reshape(-1), np.moveaxis(given, -1, 0), strict=True):
        whole[..., at] += value
    image = whole.reshape(*lead, high, wide)[
        ..., padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]
    ]
    return image.astype(columns.dtype)


_WINDOWS = (
    ((2, 3, 4, 5), (2, 2), (1, 1), (0, 0), (1, 1)),
    ((1, 2, 6, 5), (3, 2), (2, 1), (1, 2), (2, 1)),
    ((3, 4, 4), (2, 3), (1, 1), (1, 1), (2, 2)),
    ((0, 2, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1)),
)


def _columns(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, kernel, *rest in _WINDOWS:
        positions = _places(shape[-2:], kernel, *rest).shape[1]
        columns = (*shape[:-3], shape[-3] * kernel[0] * kernel[1], positions)
        yield Sample((random_array(rng, columns, dtype), shape[-2:], kernel, *rest))


# --- places given as tensors ---


def _shuffled(x: np.ndarray, groups: int) -> np.ndarray:
    split = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    return split.swapaxes(1, 2).reshape(x.shape)


def _unpooled(rank: int) -> Callable[..., np.ndarray]:
    def call(x: np.ndarray, indices: np.ndarray, size: Any, *window: Any) -> np.ndarray:
        lead = x.shape[:-rank]
        out = np.zeros((*lead, int(np.prod(size))), x.dtype)
        flat = (*lead, int(np.prod(x.shape[-rank:])))
        np.put_along_axis(out, indices.reshape(flat), x.reshape(flat), -1)
        return out.reshape(*lead, *size)

    return call


def _unpooling(rank: int) -> Any:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for lead in ((2, 3), (2,), (0, 1)):
            shape, size = (*lead, *(2,) * rank), (3,) * rank
            rows = [rng.permutation(3**rank)[: 2**rank] for _ in range(int(np.prod(lead)))]
            indices = np.array(rows, np.int64).reshape(shape)
            window = () if rank == 2 else ((1,) * rank, (0,) * rank)
            yield Sample((random_array(rng, shape, dtype), indices, size, *window))

    return samples


def _starts(sample: float, size: int, out: int, kernel: int) -> list[int]:
    step = (size - kernel) / (out - 1) if out > 1 else 0
    return [int((i + sample) * step) - int(sample * step) for i in range(out - 1)] + [size - kernel]


def _fractional(x: np.ndarray, kernel: Any, out: Any, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rank = len(kernel)
    batch = x if x.ndim == rank + 2 else x[None]
    values = np.empty((*batch.shape[:2], *out), x.dtype)
    indices = np.empty(values.shape, np.int64)
    for n, c in np.ndindex(*batch.shape[:2]):
        chosen = samples[n, c][::-1] if rank == 2 else samples[n, c]
        starts = [
            _starts(float(s), *each) for s, *each in zip(chosen, batch.shape[2:], out, kernel, strict=True)
        ]
        for place in np.ndindex(*out):
            corner = [starts[d][place[d]] for d in range(rank)]
            cells = [tuple(a + b for a, b in zip(corner, k, strict=True)) for k in np.ndindex(*kernel)]
            best = max(cells, key=lambda cell: batch[(n, c, *cell)])
            values[(n, c, *place)] = batch[(n, c, *best)]
            indices[(n, c, *place)] = np.ravel_multi_index(best, batch.shape[2:])
    return (values, indices) if x.ndim == rank + 2 else (values[0], indices[0])


def _fractions(rank: int) -> Any:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for lead, out in (((2, 3), (3, 2, 2)), ((2,), (2, 1, 3)), ((0, 2), (2, 2, 2))):
            x = random_array(rng, (*lead, *(7, 6, 5)[:rank]), dtype)
            draws = rng.uniform(0.05, 0.95, (lead[0] if len(lead) == 2 else 1, lead[-1], rank)).astype(dtype)
            yield Sample((x, (2, 3, 2)[:rank], out[:rank], draws))

    return samples


def _record(name: str, reference: Any, samples: Any, dtypes: Any = FLOATS, **more: Any) -> OpRecord:
    facts = {"differentiable": True, "namespace": "ops", **more}
    return OpRecord(name, reference, samples, dtypes, **facts)


_TOLERANCE = {"rtol": {"float32": 1e-4}, "atol": {"float32": 1e-4}, "half": "largest"}

_UNPOOL_ERRORS = tuple(
    ErrorSample(
        (
            zeros(1, *(2,) * rank),
            np.full((1, *(2,) * rank), 99),
            (3,) * rank,
            *((window,) * 2 if rank == 3 else ()),
        ),
        {},
        (IndexError, RuntimeError),
        ("99",),
    )
    for rank, window in ((2, ()), (3, (1, 1, 1)))
)

RECORDS = [
    _record(
        "affine_grid_generator",
        _affine,
        calls(
            ((2, 2, 3), (2, 1, 3, 4), False),
            ((1, 2, 3), (1, 3, 2, 1), True),
            ((1, 3, 4), (1, 2, 2, 3, 4), False),
        ),
        namespace="",
        errors=(
            *misfit("affine_grid_generator", (1, 2, 2), [1, 1, 2, 2], False, words=("theta", "(1, 2, 2)")),
            *misfit("affine_grid_generator", (1, 2, 3), [1, 2], False, words=("size",)),
        ),
        **_TOLERANCE,
    ),
    _record(
        "channel_shuffle",
        _shuffled,
        calls(((2, 6, 2, 2), 3), ((1, 4, 3), 2), ((0, 4, 2), 2)),
        ALL,
        namespace="",
        errors=(
            *misfit("channel_shuffle", (1, 4, 2), 3, words=("groups", "3")),
            *misfit("channel_shuffle", (2, 4), 2, words=("input", "(2, 4)")),
        ),
    ),
    _record(
        "col2im",
        _col2im,
        _columns,
        NUMBERS,
        half="largest",
        errors=(
            *misfit("col2im", (1, 5, 4), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1], words=("input", "4")),
            *misfit("col2im", (1, 4, 5), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1], words=("input", "5")),
        ),
    ),
    _record(
        "fractional_max_pool2d",
        _fractional,
        _fractions(2),
        constant=(3,),
        half="",
        errors=misfit(
            "fractional_max_pool2d", (1, 1, 3, 3), [2, 2], [3, 3], (1, 1, 2), words=("output_size", "3")
        ),
    ),
    _record(
        "fractional_max_pool3d",
        _fractional,
        _fractions(3),
        constant=(3,),
        half="",
        errors=misfit(
            "fractional_max_pool3d",
            (1, 1, 3, 3, 3),
            [2, 2, 2],
            [2, 2, 2],
            (1, 1, 2),
            words=("random_samples", "3"),
        ),
    ),
    _record(
        "grid_sampler",
        _sampled,
        _grids,
        namespace="",
        cancels=True,
        errors=_GRID_ERRORS,
        **_TOLERANCE,
    ),
    _record(
        "grid_sampler_2d",
        _sampled,
        _of_rank(_grids, 4),
        namespace="",
        cancels=True,
        **_TOLERANCE,
        errors=misfit("grid_sampler_2d", (1, 2, 3, 3, 3), (1, 2, 2, 2, 3), 0, 0, False, words=("input", "4")),
    ),
    _record(
        "grid_sampler_3d",
        _sampled,
        _of_rank(_grids, 5),
        namespace="",
        cancels=True,
        **_TOLERANCE,
        errors=misfit("grid_sampler_3d", (1, 2, 3, 3), (1, 2, 2, 2), 0, 0, False, words=("input", "5")),
    ),
    _record(
        "grid_sampler_backward",
        _sampled_backward,
        _grid_gradients,
        errors=misfit(
            "grid_sampler_backward",
            (1, 2, 2),
            (1, 2, 3, 3),
            (1, 2, 2, 2),
            0,
            0,
            False,
            words=("grad", "(1, 2, 2)"),
        ),
        rtol={"float32": 1e-3, "float64": 1e-6},
        atol={"float32": 1e-3, "float64": 1e-6},
        half="",
    ),
    _record(
        "im2col",
        _im2col,
        calls(*_WINDOWS),
        ALL,
        errors=(
            *misfit("im2col", (1, 2, 2, 2), [3, 3], [1, 1], [0, 0], [1, 1], words=("kernel_size", "3")),
            *misfit("im2col", (2, 2), [1, 1], [1, 1], [0, 0], [1, 1], words=("input", "(2, 2)")),
        ),
    ),
    _record("max_unpool2d", _unpooled(2), _unpooling(2), errors=_UNPOOL_ERRORS[:1]),
    _record("max_unpool3d", _unpooled(3), _unpooling(3), errors=_UNPOOL_ERRORS[1:]),
]
