// What tensor cores do, for the registers of a warp's 32 threads, as the PTX ISA lays them out.
#include "kernels/warp.h"

namespace taeda::cuda {

void WarpRegisters::multiply(bool bfloat16) {
  const auto half = [&](const uint32_t* registers, int i) {
    const auto bits = uint16_t(registers[i / 2] >> i % 2 * 16);
    return bfloat16 ? to_float(BFloat16{bits}) : to_float(Half{bits});
  };
  float a[16][16], b[16][8], c[16][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int group = lane >> 2, in_group = lane & 3;
    for (int i = 0; i < 8; ++i) {
      const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
      a[row][in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)] = half(left[lane], i);
    }
    for (int i = 0; i < 4; ++i) b[in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group] = half(right[lane], i);
    for (int i = 0; i < 4; ++i) c[i < 2 ? group : group + 8][in_group * 2 + (i & 1)] = sums[lane][i];
  }
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column) c[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < 4; ++i) sums[lane][i] = c[(lane >> 2) + (i < 2 ? 0 : 8)][(lane & 3) * 2 + (i & 1)];
}

void WarpRegisters::read(const void* const (&rows)[kLanes], bool turned, uint32_t (&to)[kLanes][4]) {
  const auto element = [&](int matrix, int row, int column) {
    return uint32_t(static_cast<const uint16_t*>(rows[matrix * 8 + row])[column]);
  };
  for (int lane = 0; lane < kLanes; ++lane)
    for (int matrix = 0; matrix < 4; ++matrix) {
      const int line = lane / 4, first = lane % 4 * 2;
      to[lane][matrix] = turned ? element(matrix, first, line) | element(matrix, first + 1, line) << 16
                                : element(matrix, line, first) | element(matrix, line, first + 1) << 16;
    }
}

}  // namespace taeda::cuda
