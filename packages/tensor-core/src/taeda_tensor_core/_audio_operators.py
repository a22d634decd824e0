"""The operators of torchaudio, which its compiled library has for PyTorch alone.

`ops.load_library` defines them where that library cannot be loaded. They are loops over time, on the cpu.

Sources: alignment as the best path of connectionist temporal classification, Graves et al. 2006
(https://doi.org/10.1145/1143844.1143891); the transducer's loss as in Graves 2012 (https://arxiv.org/abs/1211.3711).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core.library import Library

Tensor = _C.Tensor
_NEVER = -math.inf


def _lfilter_core_loop(
    input_signal_windows: Tensor, a_coeff_flipped: Tensor, padded_output_waveform: Tensor
) -> None:
    """Each output is the input less the weighted outputs before it.

    Args:
        input_signal_windows: (batch, channel, time). a_coeff_flipped: (channel, order), the last is 1.
        padded_output_waveform: (batch, channel, order - 1 + time), written in place.
    """
    order = a_coeff_flipped.shape[1]
    if order == 1:
        padded_output_waveform.copy_(input_signal_windows)
        return
    before = a_coeff_flipped[:, : order - 1]
    columns = input_signal_windows.unbind(2)
    for at, value in enumerate(columns):
        window = padded_output_waveform[:, :, at : at + order - 1]
        padded_output_waveform[:, :, at + order - 1] = value - (window * before).sum(2)


def _overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor
) -> None:
    """Half of a signal and three quarters of its changes, which fade away.

    Args:
        waveform, temp: (channel, time). last_in, last_out: (channel,), written in place.
        output_waveform: (channel, time), written in place.
    """
    entered, left = last_in.clone(), last_out.clone()
    for at, value in enumerate(temp.unbind(1)):
        left = value - entered + 0.995 * left
        entered = value
        output_waveform[:, at] = waveform[:, at] * 0.5 + left * 0.75
    last_in.copy_(entered)
    last_out.copy_(left)


def forced_align(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    """For each moment the label of the likeliest path that gives the targets, and the log-probabilities.

    Args:
        log_probs: (1, time, classes). targets: (1, length), without the blank.
        input_lengths, target_lengths: (1,). blank: The label of nothing.

    Raises:
        RuntimeError: Other shapes, or more targets than moments.
    """
    if log_probs.dim() != 3 or log_probs.shape[0] != 1 or targets.dim() != 2 or targets.shape[0] != 1:
        raise RuntimeError(
            "forced_align: expected log_probs of shape (1, time, classes) and targets of shape (1, length), found "
            f"{tuple(log_probs.shape)} and {tuple(targets.shape)}"
        )
    rows, labels = log_probs[0].tolist(), targets[0].tolist()
    repeats = sum(a == b for a, b in itertools.pairwise(labels))
    if len(rows) < len(labels) + repeats:
        raise RuntimeError(
            f"forced_align: targets length is too long for CTC: {len(rows)} moments, {len(labels)} targets, "
            f"{repeats} of which repeat the one before"
        )
    states = [blank] * (2 * len(labels) + 1)
    states[1::2] = labels
    scores = [rows[0][label] if at < 2 else _NEVER for at, label in enumerate(states)]
    steps: list[list[int]] = []
    for row in rows[1:]:
        made, taken = [], []
        for at, label in enumerate(states):
            stay, one = scores[at], scores[at - 1] if at else _NEVER
            two = scores[at - 2] if at > 1 and at % 2 and label != states[at - 2] else _NEVER
            step = 2 if two > one and two > stay else 1 if one > stay and one > two else 0
            made.append((stay, one, two)[step] + row[label])
            taken.append(step)
        scores = made
        steps.append(taken)
    at = len(states) - 1
    if len(states) > 1 and scores[at] <= scores[at - 1]:
        at -= 1
    path = [states[at]]
    for taken in reversed(steps):
        at -= taken[at]
        path.append(states[at])
    return _C.tensor([path[::-1]], dtype=targets.dtype, device="cpu"), log_probs.clone()


def _added(a: float, b: float) -> float:
    """The logarithm of the sum of what two logarithms stand for."""
    high, low = (a, b) if a > b else (b, a)
    return high if low == _NEVER else high + math.log1p(math.exp(low - high))


def _one_transducer(
    rows: Any, labels: list[int], blank: int
) -> tuple[float, list[tuple[int, int, int, float]]]:
    """Loss of one example, and its derivatives by the log-probabilities that it reads: time, place, class and value."""
    times, places = len(rows), len(labels) + 1
    ahead = [[_NEVER] * places for _ in range(times)]
    for t in range(times):
        for u in range(places):
            if t == u == 0:
                ahead[t][u] = 0.0
                continue
            waited = ahead[t - 1][u] + rows[t - 1][u][blank] if t else _NEVER
            spoken = ahead[t][u - 1] + rows[t][u - 1][labels[u - 1]] if u else _NEVER
            ahead[t][u] = _added(waited, spoken)
    behind = [[_NEVER] * (places + 1) for _ in range(times + 1)]
    behind[times][places - 1] = 0.0
    derivatives = []
    total = ahead[-1][-1] + rows[-1][-1][blank]
    for t in reversed(range(times)):
        for u in reversed(range(places)):
            waited = rows[t][u][blank] + behind[t + 1][u]
            spoken = rows[t][u][labels[u]] + behind[t][u + 1] if u < places - 1 else _NEVER
            behind[t][u] = _added(waited, spoken)
            derivatives.append((t, u, blank, -math.exp(ahead[t][u] + waited - total)))
            if u < places - 1:
                derivatives.append((t, u, labels[u], -math.exp(ahead[t][u] + spoken - total)))
    return -total, derivatives


def rnnt_loss_forward(
    logits: Tensor,
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    clamp: float,
    fused_log_softmax: bool,
) -> tuple[Tensor, Tensor]:
    """The transducer's loss of each example, and its gradient by the logits.

    Args:
        logits: (batch, time, targets + 1, classes). targets: (batch, targets). logit_lengths, target_lengths: (batch,).
        blank: The label of nothing. clamp: The largest gradient, none below 0.
        fused_log_softmax: Whether the logits are not yet log-probabilities.
    """
    known = logits.log_softmax(-1) if fused_log_softmax else logits
    gradients = _C.ops.zeros_like(known)
    losses = []
    for index, (times, count) in enumerate(zip(logit_lengths.tolist(), target_lengths.tolist(), strict=True)):
        rows = known[index, :times, : count + 1].tolist()
        loss, derivatives = _one_transducer(rows, targets[index, :count].tolist(), blank)
        losses.append(loss)
        for t, u, label, value in derivatives:
            gradients[index, t, u, label] += value
    if fused_log_softmax:
        gradients = gradients - known.exp() * gradients.sum(-1, keepdim=True)
    if clamp > 0:
        gradients = gradients.clamp(-clamp, clamp)
    return _C.tensor(losses, dtype=logits.dtype, device="cpu"), gradients


_OPERATORS = {
    _lfilter_core_loop: "Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> ()",
    _overdrive_core_loop: "Tensor waveform, Tensor temp, Tensor(a!) last_in, Tensor(b!) last_out, "
    "Tensor(c!) output_waveform) -> ()",
    forced_align: "Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) "
    "-> (Tensor, Tensor)",
    rnnt_loss_forward: "Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, "
    "float clamp, bool fused_log_softmax) -> (Tensor, Tensor)",
}
_library: Library | None = None


class _Facts:
    """What the compiled library tells of itself: it aligns, and was built with no toolkit of a device."""

    @staticmethod
    def is_align_available() -> bool:
        """Whether `forced_align` is there."""
        return True

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("_version"):
            raise AttributeError(f"_torchaudio has no operator {name!r} here")
        return lambda: None


def install() -> None:
    """Define them, once."""
    global _library
    if _library is not None:
        return
    _library = Library("torchaudio", "DEF")
    for function, signature in _OPERATORS.items():
        _library.define(f"{function.__name__}({signature}")
        _library.impl(function.__name__, function, "CompositeExplicitAutograd")
    vars(_C.ops)["_torchaudio"] = _Facts()
