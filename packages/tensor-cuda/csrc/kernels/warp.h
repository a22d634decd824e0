// What the 32 threads of a warp do together: products on tensor cores, reads of matrices, exchanges; after the PTX ISA.
//
// Note [Warps]
// A body with `kWarps` is called for each warp of a block, phase by phase, with a barrier between:
//     int phases(int64_t item) const
//     void run(int phase, int64_t item, int warp, const Warp<Own>& lanes, Shared& shared) const
// What a thread does for itself is given to `lanes.each(f)`, which calls f(lane, own); what threads do together are the
// other functions of `lanes`, which take a function that says which of a thread's values have a part in it. On a device
// a `Warp` is one thread, `each` one call and the others one instruction; on the host it is the states of all 32,
// `each` a loop and the others what the PTX ISA says of the instruction, which knows nothing of the layouts that bodies
// assume. So a body that takes a thread's part of a matrix for another is wrong on the host too. `fetch` copies to
// shared memory behind the program's back: bytes are there after the next barrier, on the host no sooner than that
// either.
#pragma once
#include "kernels/base.h"

#ifndef __CUDACC__
#include <cmath>
#include <vector>
#endif

namespace taeda::cuda {

inline constexpr int kLanes = 32;

// --- two numbers of 16 bits in a register, the first in the lower half ---

template <class T>
TAEDA_HD inline uint32_t pack(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t both;
  if constexpr (is_same<T, Half>) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
#else
  return uint32_t(number_as<T>(second).bits) << 16 | number_as<T>(first).bits;
#endif
}
/// 2^x, to some units in the last place; numbers below the normal ones are 0.
TAEDA_HD inline float power_of_2(float x) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#elif defined(__CUDACC__)
  return x;
#else
  return x < -126 ? 0.f : std::exp2(x);
#endif
}

/// What a thread gives to a product: its parts of two factors, and of the sums that the product is added to.
struct Factors {
  float (&sums)[4];
  const uint32_t (&left)[4];
  uint32_t right[2];
};
/// What a thread gives to a read of four matrices of 8 by 8: where a row of one lies, and where its parts of all go.
struct MatrixRead {
  const void* row;
  uint32_t (&to)[4];
};
/// 16 bytes for shared memory; zeros where there is nothing.
struct Fetched {
  void* to;
  const void* from;
  bool there;
};

#ifdef __CUDACC__

template <class Own>
class Warp {
 public:
  __device__ Warp(Own& own, int lane) : own_(own), lane_(lane) {}
  template <class F>
  TAEDA_HD void each(const F& f) const {
    f(lane_, own_);
  }
  /// sums += left * right, 16 by 16 times 16 by 8.
  template <class T, class Pick>
  TAEDA_HD void multiply(const Pick& pick) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const Factors f = pick(own_);
    if constexpr (is_same<T, Half>)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(f.sums[0]), "+f"(f.sums[1]), "+f"(f.sums[2]), "+f"(f.sums[3])
          : "r"(f.left[0]), "r"(f.left[1]), "r"(f.left[2]), "r"(f.left[3]), "r"(f.right[0]), "r"(f.right[1]));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(f.sums[0]), "+f"(f.sums[1]), "+f"(f.sums[2]), "+f"(f.sums[3])
          : "r"(f.left[0]), "r"(f.left[1]), "r"(f.left[2]), "r"(f.left[3]), "r"(f.right[0]), "r"(f.right[1]));
#endif
  }
  /// Four matrices of 8 by 8, each turned or not, whose rows threads 8 i to 8 i + 7 name for matrix i.
  template <bool Turned, class Pick>
  TAEDA_HD void read(const Pick& pick) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const MatrixRead r = pick(lane_, own_);
    const auto row = uint32_t(__cvta_generic_to_shared(r.row));
    if constexpr (Turned)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(r.to[0]), "=r"(r.to[1]), "=r"(r.to[2]), "=r"(r.to[3])
                   : "r"(row));
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(r.to[0]), "=r"(r.to[1]), "=r"(r.to[2]), "=r"(r.to[3])
                   : "r"(row));
#endif
  }
  /// Each thread's value becomes join(its own, that of the thread whose number differs in a bit).
  template <class Pick, class Join>
  TAEDA_HD void exchange(int bit, const Pick& pick, const Join& join) const {
#ifdef __CUDA_ARCH__
    float& value = pick(own_);
    value = join(value, __shfl_xor_sync(~0u, value, bit));
#endif
  }
  TAEDA_HD void fetch(const Fetched& f) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const auto to = uint32_t(__cvta_generic_to_shared(f.to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(f.from), "r"(f.there ? 16 : 0)
                 : "memory");
#endif
  }

 private:
  Own& own_;
  int lane_;
};
/// What was fetched is there, for the thread that asked for it.
__device__ inline void await_fetched() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

#else

/// mma.m16n8k16 and ldmatrix.x4 for the registers of all threads ("Matrix Fragments for mma.m16n8k16 with floating
/// point type" and "ldmatrix" in the PTX ISA).
struct WarpRegisters {
  float sums[kLanes][4];
  uint32_t left[kLanes][4], right[kLanes][2];
  void multiply(bool bfloat16);
  static void read(const void* const (&rows)[kLanes], bool turned, uint32_t (&to)[kLanes][4]);
};

template <class Own>
class Warp {
 public:
  Warp(Own* own, std::vector<Fetched>& fetched) : own_(own), fetched_(fetched) {}
  template <class F>
  void each(const F& f) const {
    for (int lane = 0; lane < kLanes; ++lane) f(lane, own_[lane]);
  }
  template <class T, class Pick>
  void multiply(const Pick& pick) const {
    WarpRegisters all;
    each([&](int lane, Own& own) {
      const Factors f = pick(own);
      std::memcpy(all.sums[lane], f.sums, sizeof f.sums);
      std::memcpy(all.left[lane], f.left, sizeof f.left);
      std::memcpy(all.right[lane], f.right, sizeof f.right);
    });
    all.multiply(is_same<T, BFloat16>);
    each([&](int lane, Own& own) { std::memcpy(pick(own).sums, all.sums[lane], sizeof all.sums[lane]); });
  }
  template <bool Turned, class Pick>
  void read(const Pick& pick) const {
    const void* rows[kLanes];
    uint32_t to[kLanes][4];
    each([&](int lane, Own& own) { rows[lane] = pick(lane, own).row; });
    WarpRegisters::read(rows, Turned, to);
    each([&](int lane, Own& own) { std::memcpy(pick(lane, own).to, to[lane], sizeof to[lane]); });
  }
  template <class Pick, class Join>
  void exchange(int bit, const Pick& pick, const Join& join) const {
    float before[kLanes];
    each([&](int lane, Own& own) { before[lane] = pick(own); });
    each([&](int lane, Own& own) { pick(own) = join(before[lane], before[lane ^ bit]); });
  }
  void fetch(const Fetched& f) const { fetched_.push_back(f); }

 private:
  Own* own_;
  std::vector<Fetched>& fetched_;
};
inline void await_fetched(std::vector<Fetched>& fetched) {
  for (const Fetched& f : fetched)
    if (f.there) std::memcpy(f.to, f.from, 16);
    else std::memset(f.to, 0, 16);
  fetched.clear();
}

#endif

}  // namespace taeda::cuda
