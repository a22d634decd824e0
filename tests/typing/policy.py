"""A program of reinforcement learning: copies of networks, memory of steps, groups of parameters, a profile."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable

import taeda as torch
from taeda import Tensor, nn
from taeda.optim import SGD, Adam, lr_scheduler
from taeda.profiler import profile
from taeda.utils.checkpoint import checkpoint


class DQN(nn.Module):
    def __init__(self, n: int, m: int) -> None:
        super().__init__()
        self.l1 = nn.Linear(n, 32)
        self.l2 = nn.Linear(32, m)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.l2(torch.tanh(self.l1(x)))
        return out


policy = DQN(4, 2)
target = copy.deepcopy(policy)
target.load_state_dict(policy.state_dict())
memory: deque[tuple[Tensor, int, float, Tensor]] = deque(maxlen=100)
for _ in range(16):
    s = torch.rand(4)
    with torch.inference_mode():
        a = int(policy(s).argmax().item())
    memory.append((s, a, 1.0, torch.rand(4)))
states = torch.stack([m[0] for m in memory])
actions = torch.tensor([m[1] for m in memory], dtype=torch.long).unsqueeze(1)
rewards = torch.as_tensor([m[2] for m in memory])
q = policy(states).gather(1, actions)
with torch.no_grad():
    nxt = target(torch.stack([m[3] for m in memory])).max(1)[0]
loss = nn.SmoothL1Loss()(q, (nxt * 0.9 + rewards).unsqueeze(1))
opt = Adam([{"params": policy.l1.parameters(), "lr": 1e-2}, {"params": policy.l2.parameters()}], lr=1e-3)
opt.zero_grad()
loss.backward()
torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
opt.step()
for group in opt.param_groups:
    group["lr"] *= 0.5
for tp, pp in zip(target.parameters(), policy.parameters(), strict=True):
    tp.data.copy_(0.1 * pp.data + 0.9 * tp.data)
fn: Callable[[Tensor], Tensor] = policy
print(checkpoint(policy, states, use_reentrant=False).shape, fn(states).shape)
with profile() as prof:
    policy(states)
scheduler = lr_scheduler.OneCycleLR(
    SGD(policy.parameters(), lr=0.1, momentum=0.9), max_lr=0.1, total_steps=10
)
print(scheduler.get_last_lr()[0])
dtype: torch.dtype = torch.float32
size: torch.Size = torch.zeros(2, 3).shape
print(size.numel(), dtype.itemsize, torch.iinfo(torch.int8).max, torch.finfo(dtype).eps)
