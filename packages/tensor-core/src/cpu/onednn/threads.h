// oneDNN's parallel regions on the library's own threads.
#pragma once
#ifdef TAEDA_WITH_ONEDNN

namespace taeda::onednn {

/// Makes oneDNN call this library where it would call OpenMP's; before its first use, any number of times.
void join_threads();

}  // namespace taeda::onednn
#endif
