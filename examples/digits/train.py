"""Train a small convolutional network on scikit-learn's handwritten digits and show what it learned.

python examples/digits/train.py --output demo-output
python examples/digits/train.py --device cuda  # on a GPU
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from model import DigitNet
from plots import plot_curves, plot_mistakes
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import taeda as torch
import taeda.nn.functional as F
import taeda.optim as optim
from taeda.utils.data import DataLoader, TensorDataset

REQUIRED_ACCURACY = 0.98


def load_data(device: str) -> tuple[TensorDataset, TensorDataset]:
    """The 1,797 scans on a device, scaled to [0, 1], in a fixed split of four fifths to one fifth."""
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    parts = train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = (
        torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in parts
    )
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


def train_epoch(
    model: DigitNet, loader: DataLoader, optimizer: optim.Optimizer, progress: tqdm
) -> tuple[float, float]:
    """One pass over the training set; return the mean loss and the accuracy along the way."""
    model.train()
    total_loss, correct, seen = 0.0, 0, 0
    for images, labels in loader:
        optimizer.zero_grad()
        scores = model(images)
        loss = F.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        total_loss += loss.item() * len(labels)
        correct += (scores.argmax(dim=1) == labels).sum().item()
        seen += len(labels)
        progress.set_postfix(loss=f"{total_loss / seen:.4f}", refresh=False)
        progress.update()
    return total_loss / seen, correct / seen


def predict(model: DigitNet, dataset: TensorDataset) -> torch.Tensor:
    """The class of every image of a data set, (N,) int64."""
    model.eval()
    with torch.no_grad():
        batches = [model(images).argmax(dim=1) for images, _ in DataLoader(dataset, batch_size=256)]
    return torch.cat(batches)


def accuracy(model: DigitNet, dataset: TensorDataset) -> float:
    """Share of a data set that the network reads correctly."""
    labels = dataset.tensors[1]
    return (predict(model, dataset) == labels).sum().item() / len(labels)


def train(
    model: DigitNet, train_set: TensorDataset, test_set: TensorDataset, epochs: int
) -> dict[str, list[float]]:
    """Train with Adam and a falling learning rate; return what happened in each epoch."""
    loader = DataLoader(train_set, batch_size=64, shuffle=True)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    history = {"losses": [], "train": [], "test": []}
    # A bar for a terminal; a log gets one line for each epoch.
    with tqdm(total=epochs * len(loader), unit="batch", disable=None) as progress:
        for epoch in range(1, epochs + 1):
            loss, train_accuracy = train_epoch(model, loader, optimizer, progress)
            schedule.step()
            test_accuracy = accuracy(model, test_set)
            history["losses"].append(loss)
            history["train"].append(train_accuracy)
            history["test"].append(test_accuracy)
            tqdm.write(
                f"epoch {epoch:2d}  loss {loss:.4f}  training {train_accuracy:.2%}  test {test_accuracy:.2%}"
            )
    return history


def main() -> int:
    """Train, draw, save, load again; the exit status tells whether all went well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), help="folder for pictures and weights"
    )
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="where the network is trained, for instance cuda")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(options.seed)
    train_set, test_set = load_data(options.device)
    model = DigitNet().to(options.device)
    print(f"{len(train_set)} training and {len(test_set)} test images, ", end="")
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters, seed {options.seed}")
    start = time.perf_counter()
    history = train(model, train_set, test_set, options.epochs)
    print(f"trained for {time.perf_counter() - start:.1f} s")

    weights = options.output / "digits.safetensors"
    torch.save(model.state_dict(), weights)
    fresh = DigitNet().to(options.device)
    fresh.load_state_dict(torch.load(weights))
    reached, again = accuracy(model, test_set), accuracy(fresh, test_set)

    images, labels = (part.cpu().numpy() for part in test_set.tensors)
    plot_curves(options.output / "curves.png", **history)
    plot_mistakes(options.output / "mistakes.png", images, labels, predict(fresh, test_set).cpu().numpy())
    print(
        f"test accuracy {reached:.2%}, after loading {weights} {again:.2%}; pictures are in {options.output}/"
    )
    return 0 if reached >= REQUIRED_ACCURACY and again == reached else 1


if __name__ == "__main__":
    sys.exit(main())
