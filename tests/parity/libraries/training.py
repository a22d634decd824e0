"""Programs over libraries that train, optimize and explain models."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from libraries.common import Found, filled, network, numbers, steps, table


def lightning(torch: Any, folder: Path) -> Found:
    """A LightningModule: fit with validation, checkpoint, test, predict, and loading the checkpoint again."""
    import lightning as L
    from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
    from lightning.pytorch.loggers import CSVLogger

    return _lightning(torch, folder, L, EarlyStopping, LearningRateMonitor, ModelCheckpoint, CSVLogger)


def _lightning(torch: Any, folder: Path, L: Any, early: Any, monitor: Any, keep: Any, logger: Any) -> Found:
    F = torch.nn.functional

    class Classifier(L.LightningModule):
        def __init__(self, width: int = 8, rate: float = 0.05) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.net = network(torch, width, torch.float32)

        def forward(self, x: Any) -> Any:
            return self.net(x)

        def _step(self, batch: Any, name: str) -> Any:
            x, y = batch
            scores = self(x)
            loss = F.cross_entropy(scores, y)
            self.log_dict({f"{name}_loss": loss, f"{name}_right": (scores.argmax(1) == y).float().mean()})
            return loss

        def training_step(self, batch: Any, index: int) -> Any:
            return self._step(batch, "train")

        def validation_step(self, batch: Any, index: int) -> Any:
            return self._step(batch, "val")

        def test_step(self, batch: Any, index: int) -> Any:
            return self._step(batch, "test")

        def predict_step(self, batch: Any, index: int) -> Any:
            return self(batch[0]).softmax(1)

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.rate)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
            return {"optimizer": optimizer, "lr_scheduler": scheduler}

    x, y = table(torch, dtype=torch.float32)
    data = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    model = Classifier()
    kept = keep(dirpath=folder / "kept", filename="{epoch}", monitor="val_loss", save_last=True)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=logger(folder / "logs"),
        callbacks=[kept, early("val_loss", patience=5), monitor("epoch")],
        enable_progress_bar=False,
        enable_model_summary=True,
        log_every_n_steps=2,
        gradient_clip_val=1.0,
        accumulate_grad_batches=2,
        num_sanity_val_steps=1,
        default_root_dir=folder,
    )
    trainer.fit(model, loader, loader)
    tested = trainer.test(model, loader, verbose=False)[0]
    predicted = torch.cat(trainer.predict(model, loader))
    again = Classifier.load_from_checkpoint(kept.best_model_path, weights_only=False)
    resumed = L.Trainer(
        max_epochs=4, accelerator="cpu", logger=False, enable_progress_bar=False, enable_checkpointing=False
    )
    resumed.fit(again, loader, ckpt_path=folder / "kept" / "last.ckpt", weights_only=False)
    return {
        **{f"tested {k}": v for k, v in tested.items()},
        "predicted": predicted,
        "best": Path(kept.best_model_path).name,
        "width": again.hparams.width,
        "steps": [trainer.global_step, resumed.global_step],
        "resumed": list(again.parameters()),
    }


def skorch(torch: Any, folder: Path) -> Found:
    """A network as an estimator of scikit-learn: fit, predict, a pipeline, parameters kept and loaded."""
    import numpy as np
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler
    from skorch import NeuralNetClassifier
    from skorch.callbacks import EpochScoring, LRScheduler

    class Net(torch.nn.Module):
        def __init__(self, width: int = 8) -> None:
            super().__init__()
            self.net = network(torch, width, torch.float32)

        def forward(self, x: Any) -> Any:
            return self.net(x).softmax(-1)

    x, y = (np.asarray(t) for t in table(torch, dtype=torch.float32))
    net = NeuralNetClassifier(
        Net,
        module__width=6,
        max_epochs=4,
        lr=0.1,
        train_split=None,
        batch_size=8,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        callbacks=[EpochScoring("accuracy", name="right"), LRScheduler("StepLR", step_size=2)],
        verbose=0,
    )
    pipe = Pipeline([("scale", StandardScaler()), ("net", net)])
    pipe.fit(x, y)
    net.save_params(f_params=folder / "params.pt", f_optimizer=folder / "optimizer.pt")
    other = NeuralNetClassifier(Net, module__width=6).initialize()
    other.load_params(f_params=folder / "params.pt")
    return {
        "probabilities": pipe.predict_proba(x),
        "classes": pipe.predict(x).tolist(),
        "losses": [row["train_loss"] for row in net.history],
        "again": other.predict_proba(x),
        "text": repr(net),
    }


def ignite(torch: Any, folder: Path) -> Found:
    """Trainer, evaluator, metrics, handlers and checkpoints."""
    from ignite.contrib.handlers import ProgressBar  # noqa: F401
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping
    from ignite.metrics import Accuracy, Loss, Precision, RunningAverage

    x, y = table(torch)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
    model, loss = network(torch, 8), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    trainer = create_supervised_trainer(model, optimizer, loss)
    RunningAverage(output_transform=lambda value: value).attach(trainer, "loss")
    evaluator = create_supervised_evaluator(
        model, metrics={"right": Accuracy(), "loss": Loss(loss), "precision": Precision(average=True)}
    )
    seen: list[float] = []

    @trainer.on(Events.EPOCH_COMPLETED)
    def measure(engine: Any) -> None:
        evaluator.run(loader)
        seen.append(evaluator.state.metrics["loss"])

    saver = Checkpoint({"model": model, "optimizer": optimizer}, DiskSaver(str(folder / "kept")), n_saved=1)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
    evaluator.add_event_handler(
        Events.COMPLETED, EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer)
    )
    trainer.run(loader, max_epochs=3)
    other = network(torch, 8)
    Checkpoint.load_objects(
        {"model": other}, checkpoint=torch.load(folder / "kept" / Path(saver.last_checkpoint).name)
    )
    return {
        "losses": seen,
        **evaluator.state.metrics,
        "average": trainer.state.metrics["loss"],
        "again": other(x),
    }


def accelerate(torch: Any, folder: Path) -> Found:
    """The loop of its README, gradients added up over batches, and its state kept and loaded."""
    from accelerate import Accelerator
    from accelerate.utils import set_seed

    set_seed(3)
    x, y = table(torch, dtype=torch.float32)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
    model = network(torch, 8, torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    helper = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, optimizer, loader, scheduler = helper.prepare(model, optimizer, loader, scheduler)
    losses = []
    for _ in range(3):
        for inputs, targets in loader:
            with helper.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(inputs), targets)
                helper.backward(loss)
                helper.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                losses.append(loss.detach())
    helper.save_state(folder / "state")
    with torch.no_grad():
        next(model.parameters()).zero_()
    helper.load_state(folder / "state")
    gathered = helper.gather_for_metrics(model(x))
    return {"losses": losses, "scores": gathered, "rate": scheduler.get_last_lr()}


def lion_pytorch(torch: Any, folder: Path) -> Found:
    """Its optimizer over some steps, with its state kept."""
    from lion_pytorch import Lion

    return _optimizer(torch, lambda parameters: Lion(parameters, lr=1e-2, weight_decay=1e-2))


def _optimizer(torch: Any, make: Any) -> Found:
    model = network(torch, 8)
    optimizer = make(model.parameters())
    losses = steps(torch, model, optimizer, 3)
    other = network(torch, 8)
    other.load_state_dict(model.state_dict())
    again = make(other.parameters())
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    return {
        "losses": losses + steps(torch, model, optimizer, 2),
        "again": steps(torch, other, again, 2),
        "parameters": list(model.parameters()),
    }


def torch_optimizer(torch: Any, folder: Path) -> Found:
    """Its optimizers, each over some steps."""
    import torch_optimizer as o

    names = "A2GradExp A2GradInc A2GradUni AccSGD AdaBelief AdaBound AdaMod AdamP AggMo Apollo DiffGrad Lamb LARS "
    names += "MADGRAD NovoGrad PID QHAdam QHM RAdam Ranger RangerQH RangerVA SGDP SGDW SWATS Yogi Adafactor"
    found: Found = {}
    for name in names.split():
        model = network(torch, 8)
        optimizer = getattr(o, name)(model.parameters(), **({} if name == "Adafactor" else {"lr": 1e-2}))
        found[name] = steps(torch, model, optimizer, 3)
    model = network(torch, 8)
    found["Lookahead"] = steps(torch, model, o.Lookahead(o.Yogi(model.parameters(), lr=1e-2), k=2), 4)
    return found


def captum(torch: Any, folder: Path) -> Found:
    """Attributions of inputs, layers and neurons."""
    from captum.attr import (
        DeepLift,
        FeatureAblation,
        GuidedGradCam,
        InputXGradient,
        IntegratedGradients,
        LayerConductance,
        LayerGradCam,
        LayerIntegratedGradients,
        Occlusion,
        Saliency,
    )

    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(36, 3),
    ).double()
    filled(torch, net)
    x = numbers(torch, 2, 1, 8, 8)
    found, delta = IntegratedGradients(net).attribute(x, target=1, n_steps=8, return_convergence_delta=True)
    return {
        "integrated": found,
        "delta": delta,
        "saliency": Saliency(net).attribute(x, target=0),
        "times": InputXGradient(net).attribute(x, target=2),
        "lift": DeepLift(net).attribute(x, target=1),
        "ablation": FeatureAblation(net).attribute(x, target=1),
        "occlusion": Occlusion(net).attribute(x, (1, 3, 3), target=1, strides=(1, 2, 2)),
        "cam": LayerGradCam(net, net[0]).attribute(x, target=1),
        "guided": GuidedGradCam(net, net[0]).attribute(x, target=1),
        "conductance": LayerConductance(net, net[0]).attribute(x, target=1, n_steps=4),
        "layer": LayerIntegratedGradients(net, net[0]).attribute(x, target=1, n_steps=4),
    }


def pytorch_grad_cam(torch: Any, folder: Path) -> Found:
    """Maps of what a network looked at, by several ways."""
    import pytorch_grad_cam as cams
    import torchvision
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    net = filled(torch, torchvision.models.resnet18(num_classes=5)).eval()
    x = numbers(torch, 2, 3, 64, 64, dtype=torch.float32)
    names = "GradCAM HiResCAM GradCAMPlusPlus XGradCAM EigenCAM LayerCAM EigenGradCAM AblationCAM FullGrad"
    found: Found = {}
    for name in names.split():
        with getattr(cams, name)(model=net, target_layers=[net.layer4[-1]]) as cam:
            cam.batch_size = 16
            found[name] = cam(input_tensor=x.clone(), targets=[ClassifierOutputTarget(1)] * 2)
    return found
