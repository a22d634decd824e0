// Kernels made of decompositions, for the place where kernels are found missing.
#pragma once
#include "taeda/dispatch.h"

namespace taeda {

/// Says of a decomposition that it is the operator itself, on the host.
TAEDA_API void note_on_host(const char* op);
/// Says of a decomposition that it takes halves as they are: another dtype would have results of another.
TAEDA_API void note_as_given(const char* op);
/// Whether there is a decomposition that consists of other operators.
TAEDA_API bool is_in_parts(std::string_view op);

/// The boxed kernel that decomposes an operator, or null.
const BoxedFn* decomposed_kernel(const OpEntry& op);

}  // namespace taeda
