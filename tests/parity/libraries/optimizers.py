"""Programs over libraries of optimizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, network, steps, table


def pytorch_optimizer(torch: Any, folder: Path) -> Found:
    """Many of its optimizers, each over some steps."""
    import pytorch_optimizer as o

    names = "AdaBelief AdaBound AdamP Adan AdaPNM Aida Amos CAME DAdaptAdam Lamb Lion MADGRAD NovoGrad Prodigy QHAdam"
    names += " RAdam Ranger SGDW ScheduleFreeAdamW SophiaH StableAdamW SOAP Tiger Yogi Muon"
    found: Found = {}
    for name in names.split():
        if name in ("SophiaH", "Muon") or not hasattr(o, name):
            continue
        model = network(torch, 8)
        found[name] = steps(torch, model, getattr(o, name)(model.parameters(), lr=1e-2), 3)
    return found


def torch_ema(torch: Any, folder: Path) -> Found:
    """Averages of parameters, in use for a while and kept."""
    from torch_ema import ExponentialMovingAverage

    model = network(torch, 8)
    average = ExponentialMovingAverage(model.parameters(), decay=0.9)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        steps(torch, model, optimizer, 1)
        average.update()
    x, _ = table(torch)
    with average.average_parameters():
        averaged = model(x)
    torch.save(average.state_dict(), folder / "average.pt")
    other = ExponentialMovingAverage(model.parameters(), decay=0.5)
    other.load_state_dict(torch.load(folder / "average.pt"))
    return {"averaged": averaged, "own": model(x), "decay": other.decay}


def ema_pytorch(torch: Any, folder: Path) -> Found:
    """A copy of a model that follows it."""
    from ema_pytorch import EMA

    model = network(torch, 8)
    follower = EMA(model, beta=0.9, update_after_step=1, update_every=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        steps(torch, model, optimizer, 1)
        follower.update()
    x, _ = table(torch)
    return {"averaged": follower(x), "keys": list(follower.state_dict())}


def schedulefree(torch: Any, folder: Path) -> Found:
    """Its optimizers in training and in evaluation, and their states kept and loaded."""
    import schedulefree as s

    x, _ = table(torch)
    found: Found = {}
    for name in (
        "AdamWScheduleFree",
        "SGDScheduleFree",
        "RAdamScheduleFree",
        "AdamWScheduleFreeReference",
        "SGDScheduleFreeReference",
    ):
        model = network(torch, 8)
        optimizer = getattr(s, name)(model.parameters(), lr=0.05)
        optimizer.train()
        losses = steps(torch, model, optimizer, 4)
        torch.save(optimizer.state_dict(), folder / "state.pt")
        optimizer.load_state_dict(torch.load(folder / "state.pt"))
        optimizer.eval()
        found[name] = [losses, model(x)]
    model = network(torch, 8)
    wrapped = s.ScheduleFreeWrapper(torch.optim.SGD(model.parameters(), lr=0.05), momentum=0.9)
    wrapped.train()
    found["wrapped"] = steps(torch, model, wrapped, 3)
    model = network(torch, 8)
    found["closure"] = steps_of_closure(torch, model, s.SGDScheduleFreeClosure(model.parameters(), lr=0.05))
    return found


def steps_of_closure(torch: Any, model: Any, optimizer: Any) -> list[float]:
    """Train on the table with an optimizer that calls a function for the gradients; the losses."""
    x, y = table(torch)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(3)]


def prodigyopt(torch: Any, folder: Path) -> Found:
    """Its optimizer, which finds its own step size."""
    from prodigyopt import Prodigy

    found: Found = {}
    for name, options in {
        "plain": {},
        "safe": {"safeguard_warmup": True, "use_bias_correction": True},
        "decay": {"weight_decay": 0.1, "decouple": False},
        "slices": {"slice_p": 3},
    }.items():
        model = network(torch, 8)
        optimizer = Prodigy(model.parameters(), **options)
        found[name] = steps(torch, model, optimizer, 5) + [float(optimizer.param_groups[0]["d"])]
    return found


def hydra(torch: Any, folder: Path) -> Found:
    """A network, an optimizer and a schedule from a configuration, trained and resolved."""
    from hydra.utils import call, get_class, instantiate
    from omegaconf import OmegaConf

    config = OmegaConf.create(
        {
            "net": {
                "_target_": "torch.nn.Sequential",
                "_args_": [
                    {
                        "_target_": "torch.nn.Linear",
                        "in_features": 6,
                        "out_features": 8,
                        "dtype": {"_target_": "hydra.utils.get_object", "path": "torch.float64"},
                    },
                    {"_target_": "torch.nn.ReLU"},
                    {
                        "_target_": "torch.nn.Linear",
                        "in_features": 8,
                        "out_features": 3,
                        "dtype": {"_target_": "hydra.utils.get_object", "path": "torch.float64"},
                    },
                ],
            },
            "optimizer": {"_target_": "torch.optim.SGD", "_partial_": True, "lr": 0.1, "momentum": 0.9},
            "schedule": {"_target_": "torch.optim.lr_scheduler.StepLR", "_partial_": True, "step_size": 2},
            "loss": {"_target_": "torch.nn.functional.mse_loss", "_partial_": True, "reduction": "sum"},
        }
    )
    net = instantiate(config.net)
    network_of_config = {k: tuple(v.shape) for k, v in net.state_dict().items()}
    with torch.no_grad():
        for p in net.parameters():
            p.fill_(0.1)
    optimizer = instantiate(config.optimizer)(net.parameters())
    schedule = instantiate(config.schedule)(optimizer)
    losses = steps(torch, net, optimizer, 3)
    schedule.step()
    return {
        "losses": losses,
        "shapes": {k: list(v) for k, v in network_of_config.items()},
        "rate": schedule.get_last_lr(),
        "loss": call(config.loss)(torch.ones(3), torch.zeros(3)),
        "class": get_class("torch.nn.Conv2d").__name__,
        "text": repr(net),
    }
