"""Small programs over other people's libraries; test_libraries.py runs each on taeda and on PyTorch."""

#: Of each program: the library as it is imported, the module of the program.
LIBRARIES = {
    "accelerate": ("accelerate", "training"),
    "captum": ("captum", "training"),
    "einops": ("einops", "language"),
    "gpytorch": ("gpytorch", "probability"),
    "ignite": ("ignite", "training"),
    "kornia": ("kornia", "vision"),
    "lightning": ("lightning", "training"),
    "linear_operator": ("linear_operator", "probability"),
    "lion_pytorch": ("lion_pytorch", "training"),
    "pytorch_metric_learning": ("pytorch_metric_learning", "language"),
    "skorch": ("skorch", "training"),
    "torch_optimizer": ("torch_optimizer", "training"),
    "torchdiffeq": ("torchdiffeq", "probability"),
}
