// oneDNN's parallel regions on the library's own threads.
#pragma once
#ifdef TAEDA_WITH_ONEDNN

#include <link.h>

namespace taeda::onednn {

/// Makes oneDNN, just loaded, call this library where it would call OpenMP's.
void join_threads(const link_map& library);

/// Scope of primitives whose parts wait for each other by turns of oneDNN's own: gradients of convolutions' weights are
/// added up so. Those of others wait at most where OpenMP's barrier tells, so that no helper has to hurry to them while
/// other work has its core.
class WaitingParts {
 public:
  WaitingParts();
  ~WaitingParts();
  WaitingParts(const WaitingParts&) = delete;

 private:
  bool before_;
};

}  // namespace taeda::onednn
#endif
