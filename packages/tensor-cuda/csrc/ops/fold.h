// How folds are divided among blocks, and by which of them chains may end (fusion/).
#pragma once
#include <algorithm>

#include "kernels/fold.h"
#include "ops/call.h"

namespace taeda::cuda {

/// A fold that is taken down, for which `FusedFold` has a kernel.
struct FoldEnd {
  const char* text;                                                   // of its type
  uint32_t state_size;                                                // bytes
  void (*join)(const Call& call, const Fold& fold, int64_t outputs);  // parts
};

/// Below so many elements an output is a thread's work; up to so many that of 32 threads; a part is never smaller.
inline constexpr int64_t kAlone = 32, kShort = 1024, kPart = 4096, kTilePart = 128;
/// With so many blocks the device is busy without parts.
inline constexpr int64_t kBusy = 1056, kMostParts = 1024;

/// Of many outputs each gets 32 threads, which wait for each other less than a block's.
inline int64_t outputs_of_block(int64_t length, int64_t outputs) {
  return length <= kShort || outputs >= 8 * kBusy / 2 ? 8 : 1;
}
/// In parts of `least` elements at least, so that the device is busy.
inline void divide(Fold& f, int64_t blocks, int64_t least = kPart) {
  const int64_t wanted = blocks < kBusy ? kBusy / blocks : 1;
  f.part = std::max({(f.length + wanted - 1) / wanted, least, (f.length + kMostParts - 1) / kMostParts});
  f.part = (f.part + 7) / 8 * 8;  // packs stay aligned
  f.parts = (f.length + f.part - 1) / f.part;
}

}  // namespace taeda::cuda
