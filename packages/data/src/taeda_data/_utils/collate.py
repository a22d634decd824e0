"""Functions that join samples."""

import re

from taeda_data.collate import *  # noqa: F403
from taeda_data.collate import default_collate, default_collate_fn_map, default_convert

#: Kinds of NumPy's arrays that hold texts or objects, which are not joined.
np_str_obj_array_pattern = re.compile(r"[SaUO]")

__all__ = ["default_collate", "default_collate_fn_map", "default_convert", "np_str_obj_array_pattern"]
