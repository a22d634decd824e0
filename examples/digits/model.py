"""The network: a convolutional classifier about as large as LeNet, for 8x8 images."""

import taeda as torch
import taeda.nn as nn
import taeda.nn.functional as F


class DigitNet(nn.Module):
    """Three convolutions with batch normalisation, then two linear layers with dropout between them."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.conv3 = nn.Conv2d(32, 64, kernel_size=3, padding=1)
        self.norm3 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.3)
        self.linear1 = nn.Linear(64 * 2 * 2, 96)
        self.linear2 = nn.Linear(96, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map images (N, 1, 8, 8) to class scores (N, classes)."""
        x = F.relu(self.norm1(self.conv1(x)))
        x = self.pool(F.relu(self.norm2(self.conv2(x))))
        x = self.pool(F.relu(self.norm3(self.conv3(x))))
        x = x.view(x.size(0), -1)
        x = self.dropout(F.relu(self.linear1(x)))
        return self.linear2(x)
