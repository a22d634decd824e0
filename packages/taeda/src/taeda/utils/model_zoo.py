"""The older home of `taeda.hub.load_state_dict_from_url`."""

from taeda.hub import load_state_dict_from_url as load_url

try:
    from tqdm import tqdm
except ImportError:  # progress bars are for who has them

    def tqdm(iterable=None, *args, **kwargs):  # type: ignore[no-redef]
        """The iterable itself."""
        return iterable


__all__ = ["load_url", "tqdm"]
