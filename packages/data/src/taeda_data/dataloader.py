"""``utils.data.dataloader``: where programs import the loader and its collation from."""

from taeda_data.collate import default_collate, default_convert
from taeda_data.loader import DataLoader
from taeda_data.reading import get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
