// Texts of error messages.
#include "taeda/error.h"

#include <charconv>

namespace taeda {

ShapeText::operator std::string() const {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}

namespace detail {

void Part::append_to(std::string& text) const {
  switch (kind_) {
    case Kind::Text: text += text_; break;
    case Kind::Letter: text += letter_; break;
    case Kind::Integer: text += std::to_string(integer_); break;
    case Kind::Natural: text += std::to_string(natural_); break;
    case Kind::Shape: text += std::string(shape_); break;
    case Kind::Real: {
      char digits[32];
      text.append(digits, std::to_chars(digits, std::end(digits), real_, std::chars_format::general, 6).ptr);
    }
  }
}

std::string joined(std::initializer_list<Part> parts) {
  std::string text;
  for (const Part& part : parts) part.append_to(text);
  return text;
}

void raise(ErrorKind kind, std::initializer_list<Part> parts) { throw Error(kind, joined(parts)); }

}  // namespace detail
}  // namespace taeda
