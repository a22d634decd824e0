"""Distributions, packed sequences, streams of data, hooks."""

from __future__ import annotations

from collections.abc import Iterator

import taeda as torch
from taeda import nn
from taeda.distributions import Categorical, Normal, kl_divergence
from taeda.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from taeda.utils.data import DataLoader, IterableDataset, TensorDataset, random_split


class Stream(IterableDataset[torch.Tensor]):
    def __iter__(self) -> Iterator[torch.Tensor]:
        for i in range(4):
            yield torch.full((3,), float(i))


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True))
        self.mean, self.scale = nn.Linear(16, 2), nn.Linear(16, 2)
        self.decoder = nn.Linear(2, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.encoder(x)
        q = Normal(self.mean(h), nn.functional.softplus(self.scale(h)))
        z = q.rsample()
        return self.decoder(z), kl_divergence(q, Normal(0.0, 1.0)).sum(-1)


vae = VAE()
out, kl = vae(torch.randn(4, 8))
loss = (nn.functional.mse_loss(out, torch.zeros_like(out), reduction="sum") + kl.sum()) / 4
loss.backward()
p = Categorical(logits=torch.zeros(3))
a = p.sample()
print(p.log_prob(a).item(), p.entropy())
lstm = nn.LSTM(4, 5, num_layers=2, batch_first=True, bidirectional=True)
packed = pack_padded_sequence(torch.randn(2, 3, 4), torch.tensor([3, 2]), batch_first=True)
o, (hn, cn) = lstm(packed)
padded, lengths = pad_packed_sequence(o, batch_first=True)
print(padded.shape, lengths, hn.size(), [b.shape for b in DataLoader(Stream(), batch_size=2)])
first, second = random_split(
    TensorDataset(torch.arange(10)), [7, 3], generator=torch.Generator().manual_seed(0)
)
print(len(first), second[0])
for name, param in vae.named_parameters():
    if param.grad is not None:
        print(name, tuple(param.shape), param.grad.norm().item())
handle = vae.decoder.register_forward_hook(lambda m, i, o: None)
handle.remove()
