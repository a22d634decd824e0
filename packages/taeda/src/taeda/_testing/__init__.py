"""What stands at taeda.testing._internal beside lists of dtypes: what libraries' tests take from PyTorch's own."""
