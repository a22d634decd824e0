"""The two pictures the demo writes: how training went, and which digits are still mistaken."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator


def plot_curves(path: Path, losses: list[float], train: list[float], test: list[float]) -> None:
    """Draw the loss and the two accuracies over the epochs."""
    epochs = range(1, len(losses) + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for axis in (left, right):
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.plot(epochs, losses, color="tab:red")
    left.set(xlabel="epoch", ylabel="mean training loss", yscale="log", title="Loss")
    right.plot(epochs, [100 * value for value in train], label="training")
    right.plot(epochs, [100 * value for value in test], label="test")
    right.axhline(98, color="gray", linewidth=0.8, linestyle="--")
    right.set(xlabel="epoch", ylabel="accuracy (%)", ylim=(80, 100.5), title="Accuracy")
    right.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_mistakes(path: Path, images: np.ndarray, labels: np.ndarray, answers: np.ndarray) -> None:
    """Draw every misclassified digit with its label and the network's answer."""
    wrong = np.flatnonzero(labels != answers)
    columns = max(1, min(6, len(wrong)))
    rows = max(1, -(-len(wrong) // columns))
    figure, axes = plt.subplots(rows, columns, figsize=(1.8 * columns, 2.1 * rows), squeeze=False)
    for axis in axes.flat:
        axis.axis("off")
    for axis, index in zip(axes.flat, wrong, strict=False):
        axis.imshow(images[index, 0], cmap="gray_r")
        axis.set_title(f"is {labels[index]}, read as {answers[index]}", fontsize=8)
    if len(wrong) == 0:
        axes[0, 0].set_title("no mistakes", fontsize=8)
    figure.suptitle(f"{len(wrong)} of {len(labels)} test digits misread", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
