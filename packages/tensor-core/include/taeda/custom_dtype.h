// Number formats that plug-ins define: of at most 8 bits, kept in a byte each, converted to and from float32.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "taeda/dtype.h"

namespace taeda {

/// What a plug-in says of its format. The conversions are called on several threads at once.
struct CustomDType {
  std::string name;  // letters, digits and underscores
  int bits = 8;
  std::string who;  // for messages
  std::function<void(const uint8_t* codes, float* numbers, int64_t count)> decode;
  std::function<void(const float* numbers, uint8_t* codes, int64_t count)> encode;
};

/// Gives the format a place among the dtypes. ValueError for a name that cannot be and for other sizes; RuntimeError
/// where the name is taken, with both owners, or no place is left. It lives as long as the process.
TAEDA_API DType define_dtype(CustomDType format);
/// Takes the name away, as of a plug-in that failed; tensors that are there keep their conversions.
TAEDA_API void withdraw_dtype(DType dtype);
/// The dtype of this name, built in or not; nothing where there is none.
TAEDA_API bool find_dtype(std::string_view name, DType& found);

std::string_view custom_name(DType dtype) noexcept;
/// Of a dtype that has been defined.
TAEDA_API const CustomDType& custom_dtype(DType dtype);

/// The format whose code `i` stands for `numbers[i]`; there are 2^bits of them. A number becomes the nearest one, of
/// two equally near ones that with an even code; what is beyond all becomes the last finite one, infinities their own
/// codes where there are some, NaN the code of NaN, or that of 0 where there is none.
TAEDA_API CustomDType format_of_table(std::string name, int bits, std::vector<float> numbers, std::string who);

}  // namespace taeda
