"""What each process does: train the shared network on its own shuffles of the digits."""

import argparse
import os

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import taeda as torch
import taeda.nn as nn
import taeda.nn.functional as F
import taeda.optim as optim
from taeda.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """Two convolutions and two linear layers for 8x8 images."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=3, padding=1)
        self.fc1 = nn.Linear(20 * 2 * 2, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map images (N, 1, 8, 8) to logarithms of probabilities (N, 10)."""
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.view(-1, 80)))
        return F.log_softmax(self.fc2(x), dim=1)


def load_digits_sets() -> tuple[TensorDataset, TensorDataset]:
    """The 1,797 scans, scaled to [0, 1], in a fixed split of four fifths to one fifth."""
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    parts = train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = (torch.from_numpy(np.ascontiguousarray(part)) for part in parts)
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


def train(rank: int, args: argparse.Namespace, model: Net, dataset: TensorDataset) -> None:
    """Main function of a process."""
    torch.manual_seed(args.seed + rank)
    torch.set_num_threads(1)  # the processes are what runs beside each other
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    for epoch in range(1, args.epochs + 1):
        loss = train_epoch(model, loader, optimizer)
        print(f"process {os.getpid()}  epoch {epoch:2d}  loss {loss:.4f}", flush=True)


def train_epoch(model: Net, loader: DataLoader, optimizer: optim.Optimizer) -> float:
    """One pass over the digits; the mean loss on the way."""
    model.train()
    total, seen = 0.0, 0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
        seen += len(labels)
    return total / seen


def test(args: argparse.Namespace, model: Net, dataset: TensorDataset) -> float:
    """Share of the digits that the network reads correctly."""
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, labels in DataLoader(dataset, batch_size=args.test_batch_size):
            correct += (model(images).argmax(dim=1) == labels).sum().item()
    return correct / len(dataset)
