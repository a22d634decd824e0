"""Functions that join samples."""

import re

from taeda_data.collate import collate, default_collate, default_collate_fn_map, default_convert

#: Kinds of NumPy's arrays that hold texts or objects, which are not joined.
np_str_obj_array_pattern = re.compile(r"[SaUO]")

__all__ = [
    "collate",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
    "np_str_obj_array_pattern",
]
