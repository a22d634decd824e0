// How much memory the process may use: the machine's, or what its container is given.
#pragma once
#include <cstddef>
#include <string>

#include "taeda/export.h"

namespace taeda::detail {

/// Bytes of the smallest limit that holds for this process: physical memory and those of its control groups (versions 1
/// and 2) and theirs. `root` is "" or, in tests, a folder that stands for "/".
TAEDA_API size_t container_memory(const std::string& root);

}  // namespace taeda::detail
