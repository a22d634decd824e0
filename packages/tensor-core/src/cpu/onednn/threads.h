// oneDNN's parallel regions on the library's own threads.
#pragma once
#ifdef TAEDA_WITH_ONEDNN

#include <link.h>

namespace taeda::onednn {

/// Makes oneDNN, just loaded, call this library where it would call OpenMP's.
void join_threads(const link_map& library);

}  // namespace taeda::onednn
#endif
