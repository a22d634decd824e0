"""Text of tensors: PyTorch's layout, with as many digits as tell values apart."""

from __future__ import annotations

import warnings

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class _Options:
    """What set_printoptions changes."""

    def __init__(self) -> None:
        self.precision: int | None = None
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


options = _Options()
_MIN_DIGITS = (
    4  # fraction digits shown even when fewer would do, so that columns look alike from print to print
)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are printed.

    Args:
        precision: Fraction digits; by default as many as are needed to tell values apart.
        threshold: Number of elements above which a summary is printed.
        edgeitems: Elements at each end of a summarised dimension.
        linewidth: Characters per line.
        profile: 'default', 'short' or 'full' sets all of them first; others change nothing, with a warning.
        sci_mode: Scientific notation: True, False, or None to decide by the values.
    """
    profiles = {
        "default": (None, 1000, 3, 80),
        "short": (2, 1000, 2, 80),
        "full": (None, float("inf"), 3, 80),
    }
    if profile in tuple(profiles):
        options.precision, options.threshold, options.edgeitems, options.linewidth = profiles[profile]
    elif profile is not None:
        warnings.warn(
            f"set_printoptions: argument 'profile' is one of {', '.join(profiles)}; {profile!r} changes nothing",
            UserWarning,
            stacklevel=2,
        )
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


# --- numbers ---


def _float_texts(values: Tensor) -> list[str]:
    """Texts of all elements of a 1-d real floating tensor, of one notation and equal fraction length."""
    if values.itemsize == 1:
        values = values.float()
    numbers = values.tolist()
    magnitudes = [abs(v) for v in numbers if v == v and v not in (float("inf"), float("-inf")) and v != 0]
    whole = all(v == int(v) for v in magnitudes)
    largest, smallest = (max(magnitudes), min(magnitudes)) if magnitudes else (0.0, 1.0)
    scientific = options.sci_mode
    if scientific is None:
        scientific = largest >= 1e8 or smallest < 1e-4
        # Where digits are cut off, small numbers beside large ones would lose theirs.
        scientific |= options.precision is not None and largest > 1000 * smallest
    if scientific:
        return _scientific(values, numbers)
    if whole:
        return [f"{v:.0f}." if v - v == 0 else str(v) for v in numbers]
    if options.precision is not None:
        return [f"{v:.{options.precision}f}" for v in numbers]
    return _pad_fractions(_C._shortest(values, False))


def _pad_fractions(texts: list[str]) -> list[str]:
    """Zeros behind the point so that all fractions are of one length."""
    lengths = [len(t) - t.find(".") - 1 if "." in t else 0 for t in texts]
    length = max(_MIN_DIGITS, *lengths) if lengths else _MIN_DIGITS
    padded = []
    for text, own in zip(texts, lengths, strict=True):
        if text[-1] not in "0123456789":  # inf, nan
            padded.append(text)
        else:
            padded.append((text if own else text + ".") + "0" * (length - own))
    return padded


def _scientific(values: Tensor, numbers: list[float]) -> list[str]:
    if options.precision is not None:
        return [f"{v:.{options.precision}e}" for v in numbers]
    parts = [text.partition("e") for text in _C._shortest(values, True)]
    mantissas = _pad_fractions([mantissa for mantissa, _, _ in parts])
    return [mantissa + e + exponent for mantissa, (_, e, exponent) in zip(mantissas, parts, strict=True)]


def _texts(values: Tensor) -> list[str]:
    """Texts of all elements of a 1-d tensor, right-aligned to one width."""
    if values.is_complex():
        real, imaginary = _align(_float_texts(values.real)), _align(_float_texts(values.imag))
        return [
            f"{a}{'' if b.strip().startswith('-') else '+'}{b.strip()}j"
            for a, b in zip(real, imaginary, strict=True)
        ]
    if values.is_floating_point():
        return _align(_float_texts(values))
    return _align([str(v) for v in values.tolist()])


def _align(texts: list[str]) -> list[str]:
    width = max(map(len, texts), default=0)
    return [t.rjust(width) for t in texts]


# --- layout ---


def _shown(tensor: Tensor) -> Tensor:
    """The corners of a tensor that is summarised, along every long dimension."""
    edge = options.edgeitems
    for dim in range(tensor.dim()):
        if tensor.size(dim) > 2 * edge:
            head = tensor.narrow(dim, 0, edge)
            tensor = _C.cat([head, tensor.narrow(dim, tensor.size(dim) - edge, edge)], dim)
    return tensor


def _nested(sizes: tuple[int, ...], full: tuple[int, ...], take: Callable[[], str], indent: int) -> str:
    """Brackets around the texts that `take` gives one after the other; `full` tells where something was left out."""
    edge = options.edgeitems
    cut = sizes[0] != full[0]
    if len(sizes) == 1:
        items = [take() for _ in range(sizes[0])]
        width = max(map(len, items), default=0) + 2
        if cut:
            items.insert(edge, " ...")
        return "[" + _wrapped(items, width, indent + 1) + "]"
    rows = [_nested(sizes[1:], full[1:], take, indent + 1) for _ in range(sizes[0])]
    if cut:
        rows.insert(edge, "...")
    between = "," + "\n" * (len(sizes) - 1) + " " * (indent + 1)
    return "[" + between.join(rows) + "]"


def _wrapped(items: list[str], width: int, indent: int) -> str:
    """Items joined by commas, broken into lines of the allowed width; `width` is that of an item with its comma."""
    per_line = max(1, (options.linewidth + 1 - indent) // width)  # no comma and space at its end
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return (",\n" + " " * indent).join(lines)


def contents_text(tensor: Tensor, indent: int) -> str:
    """The elements, in brackets."""
    summary = tensor.numel() > options.threshold
    shown = _shown(tensor) if summary else tensor
    texts = iter(_texts(shown.contiguous().reshape(-1)))
    if tensor.dim() == 0:
        return next(texts)
    return _nested(tuple(shown.shape), tuple(tensor.shape), lambda: next(texts), indent)


def _suffixes(tensor: Tensor) -> list[str]:
    out = []
    meta = tensor.device.type == "meta"
    if (level := _C._carrier_of(tensor)) is not None:
        return [f"level='{level}'", f"size={tuple(tensor.shape)}", f"dtype={tensor.dtype!r}"]
    if tensor.device.type != "cpu":
        out.append(f"device='{tensor.device}'")
    if meta or (tensor.numel() == 0 and tensor.dim() != 1):
        out.append(f"size={tuple(tensor.shape)}")
    # An empty list says nothing about the dtype, and neither do elements that are not there.
    silent = meta or tensor.numel() == 0
    if tensor.dtype is not _C.get_default_dtype() if silent else not _is_usual(tensor.dtype):
        out.append(f"dtype={tensor.dtype!r}")
    return out + _history(tensor)


def _is_usual(kind: _C.dtype) -> bool:
    """Whether numbers are of that dtype by themselves."""
    default = _C.get_default_dtype()
    return kind in {_C.int64, _C.bool, default, default.to_complex()}


def _history(tensor: Tensor) -> list[str]:
    grad_fn = tensor.grad_fn
    if grad_fn is not None:
        name = grad_fn.name() if callable(getattr(grad_fn, "name", None)) else type(grad_fn).__name__
        return [f"grad_fn=<{name}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def sparse_text(places: dict[str, Tensor], values: Tensor, facts: list[str], layout: str) -> str:
    """repr of a sparse tensor: its parts, each with its own indentation, and `facts` of the whole."""
    from taeda_tensor_core._modes import no_grad

    prefix = "tensor("
    with no_grad():
        parts = [
            _part(f"{name}=tensor(", part, len(prefix)) for name, part in {**places, "values": values}.items()
        ]
        text = prefix + (",\n" + " " * len(prefix)).join(parts)
        if values.device.type != "cpu":
            facts = [f"device='{values.device}'", *facts]
        suffixes = facts + ([] if _is_usual(values.dtype) else [f"dtype={values.dtype!r}"])
        suffixes += [f"layout={layout}", *_history(values)]
        if len(places) == 1:  # what is said of coordinates begins a line
            text, suffixes = f"{text},\n{' ' * len(prefix)}{suffixes[0]}", suffixes[1:]
    return with_suffixes(text, suffixes, len(prefix))


def _part(prefix: str, part: Tensor, indent: int) -> str:
    if part.device.type == "meta":
        return f"{prefix}..., size={tuple(part.shape)})"
    if not part.numel():
        return f"{prefix}[], size={tuple(part.shape)})"
    return f"{prefix}{contents_text(part.detach().cpu(), indent + len(prefix))})"


def tensor_text(tensor: Tensor, contents: str | None = None) -> str:
    """repr of a tensor."""
    from taeda_tensor_core._modes import no_grad

    plain = type(tensor) is Tensor
    prefix = "tensor(" if plain else f"{type(tensor).__name__}("
    with no_grad():
        suffixes = _suffixes(tensor)
        if contents is None:
            if tensor.device.type == "meta" or _C._carrier_of(tensor) is not None:
                contents = "..."
            elif tensor.numel() == 0:
                contents = "[]"
            else:
                contents = contents_text(tensor.detach().cpu(), len(prefix))
    text = with_suffixes(prefix + contents, suffixes, len(prefix))
    # Plain parameters say so themselves; those of other classes are only marked.
    return f"Parameter({text})" if not plain and "_is_param" in vars(tensor) else text


def formatted(tensor: Tensor, spec: str) -> str:
    """A tensor of a class with a text of its own in a formatted string: that text, or its one number.

    Raises:
        TypeError: A format for a number, and the tensor has dimensions.
    """
    if not tensor.dim():
        return format(tensor.item(), spec)
    if spec:
        raise TypeError(
            f"__format__: a format such as {spec!r} needs a tensor of no dimension, found shape {tuple(tensor.shape)}"
        )
    return repr(tensor)


def with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """The text with what is said after the elements, in further lines where it is too long, and closed."""
    width = len(text) - text.rfind("\n") + 1  # as PyTorch counts
    for suffix in suffixes:
        if width + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * indent + suffix
            width = indent + len(suffix)
        else:
            text += ", " + suffix
            width += len(suffix) + 2
    return text + ")"
