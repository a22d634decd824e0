// Chains of element-wise operators, as their lines say them, and their text.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/fused_fold.h"
#include "ops/fold.h"

namespace taeda::cuda {

/// A value of a chain: an operand or a step's result (`place`), or a number of the step's own.
struct Read {
  int place = -1;  // operands first, then steps; -1: the number
  FusedNumber number{};
};
struct Step {
  const char* line;
  const char* family;
  Class computes;
  int dtype;  // of the result
  std::vector<Read> operands;
  FusedNumber numbers[3]{};
};
struct Chain {
  std::vector<int> inputs;   // dtypes
  std::vector<Step> steps;   // each after those that it needs
  std::vector<int> outputs;  // steps whose results are wanted
  const FoldEnd* end = nullptr;
  int folded = -1;  // which step's result, where there is an end

  int operands() const { return int(inputs.size() + outputs.size()); }
  /// Elements that a thread computes at a time.
  int pack() const;
  /// The numbers, in the order in which the text asks for them.
  std::vector<FusedNumber> numbers() const;
  /// The text of the chain's kernel: it depends on which operators there are, and on none of the numbers.
  std::string text() const;
  uint32_t body_size() const;
  /// Items that a block of it takes in one go.
  int per_block() const { return end ? 1 : kEachThreads; }
};

/// Whether chains may have such a line, and such an element type.
bool has_line(const char* family);
bool has_dtype(int dtype);

}  // namespace taeda::cuda
