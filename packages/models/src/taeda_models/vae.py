"""A variational autoencoder."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["VAE"]


class VAE(nn.Module):
    """Encodes vectors of numbers in [0, 1] as normal distributions and decodes samples of them.

    Args:
        features: Length of the vectors.
        hidden: Features between.
        latent: Dimensions of the distributions.

    Source: Kingma and Welling, "Auto-Encoding Variational Bayes", 2013; keys of PyTorch's example.

    Example:
        >>> model = VAE(784)
        >>> reconstruction, mean, log_variance = model(taeda.rand(8, 784))
        >>> model.loss(reconstruction, taeda.rand(8, 784), mean, log_variance).backward()
    """

    def __init__(self, features: int = 784, hidden: int = 400, latent: int = 20) -> None:
        super().__init__()
        self.fc1 = nn.Linear(features, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, features)

    def encode(self, x: Any) -> tuple[Any, Any]:
        """Mean and logarithm of the variance, each (N, latent), of (N, features)."""
        hidden = nn.functional.relu(self.fc1(x))
        return self.fc21(hidden), self.fc22(hidden)

    def reparameterize(self, mean: Any, log_variance: Any) -> Any:
        """A sample whose gradients reach mean and variance."""
        return mean + (0.5 * log_variance).exp() * tensor.randn_like(mean)

    def decode(self, z: Any) -> Any:
        """(N, features) in (0, 1) of (N, latent)."""
        return self.fc4(nn.functional.relu(self.fc3(z))).sigmoid()

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        """The reconstruction of a sample (in evaluation: of the mean), mean and logarithm of the variance."""
        mean, log_variance = self.encode(x.flatten(1))
        z = self.reparameterize(mean, log_variance) if self.training else mean
        return self.decode(z), mean, log_variance

    @staticmethod
    def loss(reconstruction: Any, x: Any, mean: Any, log_variance: Any) -> Any:
        """The negative evidence lower bound, summed: cross-entropy and divergence from the standard normal."""
        entropy = nn.functional.binary_cross_entropy(reconstruction, x.flatten(1), reduction="sum")
        return entropy - 0.5 * (1 + log_variance - mean * mean - log_variance.exp()).sum()
