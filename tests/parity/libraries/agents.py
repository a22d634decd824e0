"""Programs over libraries of agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, numbers


def tensordict(torch: Any, folder: Path) -> Found:
    """Dictionaries that behave as tensors, modules over them, files, and functional calls."""
    from tensordict import LazyStackedTensorDict, MemoryMappedTensor, TensorDict, tensorclass
    from tensordict.nn import TensorDictModule, TensorDictSequential

    a = TensorDict({"x": numbers(torch, 3, 4), "n": {"y": torch.arange(6).reshape(3, 2)}}, batch_size=[3])
    net = filled(torch, torch.nn.Linear(4, 2).double())
    module = TensorDictSequential(
        TensorDictModule(net, ["x"], ["h"]), TensorDictModule(lambda h: h.relu(), ["h"], ["z"])
    )
    out = module(a.clone())
    out["z"].sum().backward()
    parameters = TensorDict.from_module(net)
    with parameters.apply(lambda p: p.detach() * 2).to_module(net):
        doubled = net(a["x"])
    a.memmap(folder / "kept")
    again = TensorDict.load_memmap(folder / "kept")

    @tensorclass
    class Pair:
        left: torch.Tensor
        right: torch.Tensor

    pair = Pair(left=torch.ones(2, 3), right=torch.zeros(2), batch_size=[2])
    lazy = LazyStackedTensorDict(a[0], a[1], stack_dim=0)
    del MemoryMappedTensor
    return {
        "z": out["z"],
        "gradient": net.weight.grad,
        "doubled": doubled,
        "again": again["x"],
        "stack": torch.stack([a, a], 1)["n", "y"],
        "cat": torch.cat([a, a])["x"],
        "view": a.reshape(3, 1)["x"],
        "flat": sorted(map(str, a.flatten_keys().keys())),
        "gather": a[torch.tensor([2, 0])]["x"],
        "text": repr(a),
        "pair": pair[0].left,
        "lazy": lazy["x"],
        "sum": (a["x"].sum()),
        "mean": a.select("x").mean(0)["x"],
        "lock": a.lock_().is_locked,
        "split": [p["x"] for p in a.split(2)],
    }


def torchrl(torch: Any, folder: Path) -> Found:
    """Values of advantages, a loss of PPO, memory and modules of policies."""
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule
    from torchrl.data import LazyTensorStorage, ReplayBuffer, TensorDictReplayBuffer
    from torchrl.modules import MLP, ProbabilisticActor, TanhNormal, ValueOperator
    from torchrl.objectives import ClipPPOLoss
    from torchrl.objectives.value import GAE

    actor = torch.nn.Sequential(MLP(4, 4, num_cells=[8]), __import__("tensordict").nn.NormalParamExtractor())
    policy = ProbabilisticActor(
        TensorDictModule(filled(torch, actor), ["observation"], ["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        return_log_prob=True,
    )
    value = ValueOperator(filled(torch, MLP(4, 1, num_cells=[8])), in_keys=["observation"])
    n = torch.zeros(6, 1, dtype=torch.bool)
    data = TensorDict(
        {
            "observation": numbers(torch, 6, 4, dtype=torch.float32),
            "next": {
                "observation": numbers(torch, 6, 4, seed=1, dtype=torch.float32),
                "reward": torch.ones(6, 1),
                "done": n,
                "terminated": n,
            },
            "done": n,
        },
        [6],
    )
    data = policy(data)
    data["action"] = torch.full((6, 2), 0.3)
    data["action_log_prob"] = torch.zeros(6)
    data = GAE(gamma=0.9, lmbda=0.95, value_network=value)(data)
    losses = ClipPPOLoss(policy, value)(data)
    losses["loss_objective"].backward()
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(20), batch_size=4)
    buffer.extend(data)
    del ReplayBuffer
    return {
        "advantage": data["advantage"],
        "objective": losses["loss_objective"],
        "critic": losses["loss_critic"],
        "gradients": [p.grad for p in actor.parameters()],
        "sample": list(buffer.sample().shape),
    }


def stable_baselines3(torch: Any, folder: Path) -> Found:
    """Agents of five kinds that learn for a while, and their files."""
    import gymnasium
    import numpy as np
    from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
    from stable_baselines3.common.evaluation import evaluate_policy

    found: Found = {}
    for kind, world, options in (
        (PPO, "CartPole-v1", {"n_steps": 64, "batch_size": 32, "n_epochs": 2}),
        (A2C, "CartPole-v1", {}),
        (DQN, "CartPole-v1", {"learning_starts": 20}),
        (SAC, "Pendulum-v1", {"learning_starts": 20}),
        (TD3, "Pendulum-v1", {"learning_starts": 20}),
        (DDPG, "Pendulum-v1", {"learning_starts": 20}),
    ):
        agent = kind(
            "MlpPolicy",
            gymnasium.make(world),
            seed=0,
            device="cpu",
            policy_kwargs={"net_arch": [16]},
            **options,
        )
        agent.learn(128)
        filled(torch, agent.policy)
        agent.save(folder / kind.__name__)
        again = kind.load(folder / kind.__name__, device="cpu")
        size = agent.observation_space.shape[0]
        at = np.random.default_rng(0).standard_normal((3, size)).astype(np.float32)
        found[kind.__name__] = [
            agent.predict(at, deterministic=True)[0],
            again.predict(at, deterministic=True)[0],
        ]
        mean, _ = evaluate_policy(again, gymnasium.make(world), n_eval_episodes=1, warn=False)
        found[f"{kind.__name__} finite"] = bool(np.isfinite(mean))
        found[f"{kind.__name__} text"] = repr(agent.policy)
    return found


def tianshou(torch: Any, folder: Path) -> Found:
    """Networks and policies' values of returns."""
    from tianshou.data import Batch, ReplayBuffer
    from tianshou.utils.net.common import MLP, Net

    net = filled(torch, Net(state_shape=(4,), action_shape=2, hidden_sizes=[8, 8]))
    scores, _ = net(numbers(torch, 3, 4, dtype=torch.float32))
    buffer = ReplayBuffer(size=10)
    for i in range(4):
        buffer.add(
            Batch(obs=i, act=i, rew=float(i), terminated=i == 3, truncated=False, obs_next=i + 1, info={})
        )
    batch = Batch(a=numbers(torch, 3), b=numbers(torch, 3, 2))
    small = filled(torch, MLP(input_dim=4, output_dim=2, hidden_sizes=[8]))
    return {
        "scores": scores,
        "size": len(buffer),
        "batch": batch[1:].b,
        "small": small(numbers(torch, 3, 4, dtype=torch.float32)),
    }
