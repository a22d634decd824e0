// Kernels by name, and how they run: on a device, and on the host's simulated one.
//
// Note [Phases]
// Threads of a block that work together do so in phases: a body with `phases()` has
//     void run(int phase, int64_t item, int thread, Shared& shared, Own& own) const
// which is called for each thread of the block, phase by phase, with a barrier between. `Shared` is the block's, `Own`
// the thread's, and both last from phase to phase; a block takes one item after the other. On a device these are
// shared memory and registers, on the host a loop over the threads within a loop over the phases. Bodies whose warps
// work together have phases too: see Note [Warps] in warp.h. Their shared memory may be more than the 48 KiB that a
// kernel has without asking.
#pragma once
#include "kernels/base.h"
#include "kernels/warp.h"

#ifndef __CUDACC__
#include <memory>
#endif

namespace taeda::cuda {

/// A kernel as the host knows it.
struct Kernel {
  const char* name;    // of the function in the device code
  const char* family;  // which image it lies in
  uint32_t size;       // of the body
  int32_t threads;     // of a block
  int32_t per_block;   // items that a block takes in one go
  uint32_t shared;     // bytes of shared memory that a launch asks for, beside what the function has of its own
  void (*simulate)(const void* body, int64_t items);
};

/// The kernel of a body; families define it (TAEDA_KERNEL).
template <class Body>
const Kernel& kernel_of();

template <class Body> inline constexpr bool has_warps = requires { Body::kWarps; };
template <class Body> inline constexpr bool has_phases = requires { typename Body::Shared; };
inline constexpr int kEachThreads = 256;
template <class Body>
constexpr int threads_of() {
  if constexpr (has_warps<Body>) return Body::kWarps * kLanes;
  else if constexpr (has_phases<Body>) return Body::kThreads;
  else return kEachThreads;
}

#ifdef __CUDACC__

template <class Body>
__device__ inline void run_on_device(const Body& body, int64_t items) {
  if constexpr (has_warps<Body>) {
    extern __shared__ __align__(128) unsigned char bytes[];
    auto& shared = *reinterpret_cast<typename Body::Shared*>(bytes);
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
      typename Body::Own own;
      const int phases = body.phases(item);
      for (int phase = 0; phase < phases; ++phase) {
        // What follows from these is found anew: kept from phase to phase it would take registers from sums.
        int64_t again = item;
        unsigned thread = threadIdx.x;
        asm volatile("" : "+l"(again), "+r"(thread));
        body.run(phase, again, int(thread / kLanes), Warp<typename Body::Own>(own, int(thread % kLanes)), shared);
        await_fetched();
        __syncthreads();
      }
    }
  } else if constexpr (has_phases<Body>) {
    __shared__ typename Body::Shared shared;
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
      typename Body::Own own;
      const int phases = body.phases();
      for (int phase = 0; phase < phases; ++phase) {
        body.run(phase, item, int(threadIdx.x), shared, own);
        __syncthreads();
      }
    }
  } else {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < items; i += step) body(i);
  }
}
/// Defines the kernel of a body; within namespace taeda::cuda. Families name themselves by TAEDA_FAMILY before.
#define TAEDA_KERNEL(NAME, ...)                                                     \
  extern "C" __global__ void __launch_bounds__(threads_of<__VA_ARGS__>())           \
      taeda_##NAME(const __grid_constant__ __VA_ARGS__ body, const int64_t items) { \
    run_on_device(body, items);                                                     \
  }

#else

template <class Body>
void run_on_host(const void* given, int64_t items) {
  Body body;
  std::memcpy(static_cast<void*>(&body), given, sizeof body);
  if constexpr (has_warps<Body>) {
    using Own = typename Body::Own;
    const auto shared = std::make_unique<typename Body::Shared>();
    const auto own = std::make_unique<Own[]>(size_t(Body::kWarps) * kLanes);
    std::vector<Fetched> fetched;
    for (int64_t item = 0; item < items; ++item)
      for (int phase = 0; phase < body.phases(item); ++phase) {
        for (int warp = 0; warp < Body::kWarps; ++warp)
          body.run(phase, item, warp, Warp<Own>(&own[size_t(warp) * kLanes], fetched), *shared);
        await_fetched(fetched);
      }
  } else if constexpr (has_phases<Body>) {
    const auto shared = std::make_unique<typename Body::Shared>();
    const auto own = std::make_unique<typename Body::Own[]>(size_t(Body::kThreads));
    for (int64_t item = 0; item < items; ++item)
      for (int phase = 0; phase < body.phases(); ++phase)
        for (int thread = 0; thread < Body::kThreads; ++thread) body.run(phase, item, thread, *shared, own[thread]);
  } else {
    for (int64_t i = 0; i < items; ++i) body(i);
  }
}
template <class Body>
constexpr Kernel kernel_entry(const char* name, const char* family) {
  uint32_t shared = 0;
  if constexpr (has_warps<Body>) shared = sizeof(typename Body::Shared);
  const int per_block = has_phases<Body> ? 1 : kEachThreads;
  return {name, family, sizeof(Body), threads_of<Body>(), per_block, shared, &run_on_host<Body>};
}
#define TAEDA_KERNEL(NAME, ...)                                                               \
  template <>                                                                                 \
  const Kernel& kernel_of<__VA_ARGS__>() {                                                    \
    static constexpr Kernel kernel = kernel_entry<__VA_ARGS__>("taeda_" #NAME, TAEDA_FAMILY); \
    return kernel;                                                                            \
  }

#endif

}  // namespace taeda::cuda
