"""A language model, its training and what it writes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import taeda as torch
from taeda import Tensor, nn


@dataclass
class Config:
    vocab: int = 50
    dim: int = 16
    heads: int = 2
    layers: int = 2
    length: int = 12


class Attention(nn.Module):
    bias: Tensor

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.c = c
        self.qkv = nn.Linear(c.dim, 3 * c.dim, bias=False)
        self.proj = nn.Linear(c.dim, c.dim)
        self.register_buffer(
            "bias", torch.tril(torch.ones(c.length, c.length)).view(1, 1, c.length, c.length)
        )

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.size()
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (y.view(b, t, self.c.heads, c // self.c.heads).transpose(1, 2) for y in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        att = torch.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(b, t, c)
        out: Tensor = self.proj(y)
        return out


class Block(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.att = Attention(c)
        self.mlp = nn.Sequential(
            nn.Linear(c.dim, 4 * c.dim), nn.GELU(), nn.Linear(4 * c.dim, c.dim), nn.Dropout(0.1)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(self.n1(x))
        out: Tensor = x + self.mlp(self.n2(x))
        return out


class GPT(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.tok = nn.Embedding(c.vocab, c.dim)
        self.pos = nn.Parameter(torch.zeros(1, c.length, c.dim))
        self.blocks = nn.Sequential(*[Block(c) for _ in range(c.layers)])
        self.head = nn.Linear(c.dim, c.vocab, bias=False)
        self.apply(self._init)

    def _init(self, m: nn.Module) -> None:
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, mean=0.0, std=0.02)
            if m.bias is not None:
                nn.init.zeros_(m.bias)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.tok(idx) + self.pos[:, : idx.size(1)]
        logits = self.head(self.blocks(x))
        loss = None
        if targets is not None:
            loss = nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    @torch.no_grad()
    def generate(self, idx: Tensor, n: int, top_k: int | None = None) -> Tensor:
        for _ in range(n):
            logits, _ = self(idx)
            logits = logits[:, -1, :]
            if top_k is not None:
                v, _ = torch.topk(logits, top_k)
                logits[logits < v[:, [-1]]] = -float("inf")
            probs = torch.softmax(logits, dim=-1)
            idx = torch.cat((idx, torch.multinomial(probs, num_samples=1)), dim=1)
        return idx


model = GPT(Config())
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: min(1.0, step / 10))
x = torch.randint(0, 50, (4, 12))
for _ in range(2):
    logits, loss = model(x, x)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    sched.step()
print(model.generate(x[:, :2], 3, 5).tolist(), sum(p.numel() for p in model.parameters() if p.requires_grad))
