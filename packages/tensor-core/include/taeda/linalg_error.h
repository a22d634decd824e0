// The kind of error that matrices without the wanted factors or values end in; it has a Python class of its own.
#pragma once
#include "taeda/error.h"

namespace taeda {

/// Beside the kinds of error.h, which have a status in the C ABI: there it is told as what it is derived from, Runtime.
inline constexpr ErrorKind kLinAlgError = ErrorKind(uint8_t(ErrorKind::Buffer) + 1);

}  // namespace taeda
