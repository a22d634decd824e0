"""What programs take from PyTorch's own tests."""
