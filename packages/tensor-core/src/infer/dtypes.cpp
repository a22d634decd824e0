// Refusals of dtypes.
#include "infer/dtypes.h"

#include <string>

namespace taeda::infer {

void expect_dtype(const char* op, const char* argument, const Tensor& t, DType expected, const char* like) {
  if (t.dtype() == expected) [[likely]]
    return;
  fail(ErrorKind::Runtime, op, ": argument '", argument, "' has dtype ", name(t.dtype()), ", expected ", name(expected),
       like ? ", the dtype of '" + std::string(like) + "'" : "");
}

}  // namespace taeda::infer
