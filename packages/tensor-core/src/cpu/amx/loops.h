// Inner loops of bfloat16 matrix products on the tile registers of Intel's processors (AMX): Intel 64 and IA-32
// Architectures Optimization Reference Manual, chapter 20.
#pragma once
#include <cstdint>

namespace taeda::amx {

/// The product of a tile of 16 rows by 32 numbers and one of 32 numbers by 16 columns is added to 16 x 16 sums; a block
/// is two tiles by two.
inline constexpr int64_t kDeep = 32, kBlock = 32;
/// Bits of the numbers that one side of a block has at one step of the inner dimension, and sums of a block.
inline constexpr int64_t kStep = kBlock * kDeep, kSums = kBlock * kBlock;

/// The bits of bfloat16 numbers.
using Half = uint16_t;

/// One operand: element (i, j) lies at data[i * ld + j], or at data[j * ld + i] when transposed.
struct Side {
  const Half* data;
  int64_t ld;
  bool transposed;
  Side from_row(int64_t i) const { return {data + (transposed ? i : i * ld), ld, transposed}; }
  Side from_column(int64_t j) const { return {data + (transposed ? j * ld : j), ld, transposed}; }
};

// Operands are laid out by blocks of kBlock rows (columns), in each the steps of the inner dimension one after the
// other, with zeros beyond the end of either.

/// The first `m` rows of a left operand of `k` columns, and so the first `n` columns of a right one of `k` rows.
void lay_left(const Side& a, int64_t m, int64_t k, Half* to);
void lay_right(const Side& b, int64_t k, int64_t n, Half* to);

/// Blocks of a left operand: so far from row to row, step to step and block to block. One whose rows lie together is
/// read as it stands, if it consists of whole blocks and steps.
struct Left {
  const Half* data;
  int64_t row, step, block;
};
/// What lay_left() made of rows of `steps` steps.
inline Left laid(const Half* data, int64_t steps) { return {data, kDeep, kStep, steps * kStep}; }

/// A block of columns of a right operand of k rows: as lay_right() made it, or where it stands, to be laid out.
struct Right {
  const Half* laid;
  Side side;
  int64_t k;
};

/// Up to kBlock columns of a result of float32 or bfloat16 numbers; sums are added to a row, or to what stands in
/// float32 ones, where that is given, and rounded at the end.
struct Result {
  float* floats;
  Half* halves;
  int64_t ld, columns;
  const float* row;
  bool onto;
};

/// `m` rows of a left operand by one block of a right one, over `steps` steps; `sums` has room for the blocks of rows.
void multiply(const Left& left, int64_t m, const Right& right, int64_t steps, const Result& result, float* sums);

/// Whether this build has them; whether the processor does is another question.
bool built() noexcept;

}  // namespace taeda::amx
