"""``utils.data.dataloader``: where programs import the loader and its collation from."""

from taeda_data.collate import default_collate, default_convert
from taeda_data.loader import DataLoader

__all__ = ["DataLoader", "default_collate", "default_convert"]
