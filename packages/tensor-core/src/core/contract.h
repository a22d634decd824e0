// Kernels that were written for another state of their operator, made to serve the present one.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "taeda/library.h"

namespace taeda {

/// An operator as the author of a kernel knew it.
struct WrittenFor {
  std::string_view schema = {};  // empty: as it is here
  Kind convention =
      Kind::Structured;  // Structured: the kernel fills outputs, which come first; Direct: it gives results
};
/// A kernel in the author's convention: `outputs` of the arguments are outputs to be filled.
using WrittenKernel = std::function<Values(const OpEntry& op, KeySet keys, size_t outputs, Values arguments)>;

/// In which convention kernels of the operator are called here; of composites and views, which have none, Direct.
TAEDA_API Kind convention_of(const OpEntry& op);
/// Whether the kernel can be called as the operator calls its kernels. ValueError naming both schemas where it cannot
/// be made to serve at all.
TAEDA_API bool serves_as_it_is(const OpEntry& op, const WrittenFor& author);
/// The kernel as one that is called as the operator calls its kernels. An argument that it does not know reaches it at
/// its default alone; for other values the operator is decomposed, falls back, or NotImplementedError says so. An
/// argument that the operator here does not have is the kernel's own default. Whose it is stands in messages.
TAEDA_API BoxedFn adapted(const OpEntry& op, const WrittenFor& author, WrittenKernel kernel, std::string who);

/// What computes an operator in a kernel's place on a backend with memory: its decomposition, or the cpu where the user
/// has chosen that; null for neither.
const BoxedFn* stand_in(const OpEntry& op, BackendId id);

}  // namespace taeda
