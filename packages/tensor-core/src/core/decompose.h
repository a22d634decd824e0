// Kernels made of decompositions, for the place where kernels are found missing.
#pragma once
#include "taeda/dispatch.h"

namespace taeda {

/// The boxed kernel that decomposes an operator, or null.
const BoxedFn* decomposed_kernel(const OpEntry& op);

}  // namespace taeda
