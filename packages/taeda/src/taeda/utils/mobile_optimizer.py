"""Programs for telephones: there is no compiler of Python programs that would make them."""

import enum

from taeda import _absent

#: Steps that a program asks to be left out.
MobileOptimizerType = enum.Enum(
    "MobileOptimizerType",
    "CONV_BN_FUSION INSERT_FOLD_PREPACK_OPS REMOVE_DROPOUT FUSE_ADD_RELU HOIST_CONV_PACKED_PARAMS "
    "VULKAN_AUTOMATIC_GPU_TRANSFER",
    start=0,
)

optimize_for_mobile = _absent.function(
    "taeda.utils.mobile_optimizer.optimize_for_mobile", "there is no compiler of Python programs"
)
