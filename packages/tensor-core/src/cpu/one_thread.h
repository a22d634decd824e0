// A scope in which OpenMP code called from this thread stays on it.
#pragma once
#include <omp.h>

namespace taeda::cpu {

/// Vendor routines then neither start threads of their own nor split sums by their number.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace taeda::cpu
