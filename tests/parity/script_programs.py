"""Programs that PyTorch compiles to TorchScript, for `test_script_archives.py`: one for each part of the language."""

import enum
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


class Pair(NamedTuple):
    first: Tensor
    count: int


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.value = start

    def step(self, by: int) -> int:
        self.value += by
        return self.value


@torch.jit.interface
class Stage:
    def forward(self, x: Tensor) -> Tensor:
        pass


class Scale(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Shift(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Loops(nn.Module):
    """Loops with `break` and `continue`, branches, lists, dicts, strings, optional values."""

    names: list[str]

    def __init__(self):
        super().__init__()
        self.names = ["a", "bb", "ccc"]
        self.table = {"a": 1, "bb": 2}
        self.limit = 10.0

    def forward(
        self, x: Tensor, extra: Tensor | None = None, times: int = 3
    ) -> tuple[Tensor, dict[str, int], str]:
        total = 0
        for i in range(times):
            if i == 1:
                continue
            total += i
        while total < 20:
            total += 7
            if total == 16:
                break
        found: dict[str, int] = {}
        for i, name in enumerate(self.names):
            found[name] = self.table.get(name, -1) * i + len(name)
        if extra is not None:
            x = x + extra
        parts = [x[i] for i in range(x.size(0))]
        parts.append(x.sum(0))
        text = "{} of {}: {}".format(total, x.dim(), "-".join([n.upper() for n in self.names]))
        if float(x.sum()) > self.limit or total // 3 % 2 == 1:
            return torch.stack(parts[::2]), found, text
        return torch.stack(parts), found, text.replace("-", "+")

    @torch.jit.export
    def halves(self, values: list[int]) -> list[float]:
        return [v / 2 for v in values]


class Objects(nn.Module):
    """Script classes, named tuples, enumerations, interfaces in a list, `with`, assertions and exceptions."""

    mode: Mode

    def __init__(self):
        super().__init__()
        self.mode = Mode.MEAN
        self.stages = nn.ModuleList([Scale(), Shift()])
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor, which: int = 0) -> Pair:
        self.seen += 1
        counter = Counter(2)
        counter.step(int(self.seen))
        stage: Stage = self.stages[which]
        y = stage.forward(x) * self.weight
        if which > 1:
            raise ValueError(f"no stage {which}")
        with torch.no_grad():
            y = y + self.weight
        return Pair(y.sum() if self.mode == Mode.SUM else y.mean(), counter.value)


class Layers(nn.Module):
    """Layers whose own code branches: normalisation, recurrence, dropout, attention."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(4, 6, 3, padding=1), nn.BatchNorm1d(6), nn.GELU())
        self.rnn = nn.LSTM(6, 4, num_layers=2, batch_first=True, bidirectional=True)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (h, _) = self.rnn(self.conv(x).transpose(1, 2))
        z, _ = self.attention(y, y, y, need_weights=False)
        return self.drop(self.norm(y + z)), h


class Forked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        later = torch.jit.fork(torch.relu, x)
        return torch.jit.wait(later) + x.to(torch.float64).to(x.dtype)


class Traced(nn.Module):
    """For a trace: views by sizes, constants, a layer that is shared."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.other = self.conv
        self.rnn = nn.GRU(3, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.conv(x) + self.other(x)
        z, _ = self.rnn(y.view(y.size(0), -1)[:, :9].reshape(-1, 3, 3))
        return z, y * torch.tensor([1.5, 2.0]).view(1, 2, 1, 1)
