// Which text is which header's; the list is setup.py's.
#include "driver/headers.h"

#include <cstring>
#include <string>
#include <vector>

#include "fusion/number.h"

#define TAEDA_HEADER(SYMBOL, NAME) extern "C" const char SYMBOL[];
#define TAEDA_DEVICE_HEADER TAEDA_HEADER
#include TAEDA_HEADERS
#undef TAEDA_HEADER
#undef TAEDA_DEVICE_HEADER

namespace taeda::cuda {

std::span<const Header> headers(Compiling how) {
  // What stands in the place of the host's headers, and of one of the tensor core's, comes first.
#define TAEDA_HEADER(SYMBOL, NAME)
#define TAEDA_DEVICE_HEADER(SYMBOL, NAME) made.push_back({NAME, SYMBOL});
  static const std::vector<Header> all = [] {
    std::vector<Header> made;
#include TAEDA_HEADERS
#undef TAEDA_HEADER
#undef TAEDA_DEVICE_HEADER
    const size_t replaced = made.size();
#define TAEDA_HEADER(SYMBOL, NAME)                                                   \
  {                                                                                  \
    bool known = false;                                                              \
    for (size_t i = 0; i < replaced; ++i) known |= !std::strcmp(made[i].name, NAME); \
    if (!known) made.push_back({NAME, SYMBOL});                                      \
  }
#define TAEDA_DEVICE_HEADER(SYMBOL, NAME)
#include TAEDA_HEADERS
#undef TAEDA_HEADER
#undef TAEDA_DEVICE_HEADER
    return made;
  }();
#define TAEDA_HEADER(SYMBOL, NAME) {NAME, SYMBOL},
#define TAEDA_DEVICE_HEADER(SYMBOL, NAME)
  static const Header of_host[] = {
#include TAEDA_HEADERS
  };
#undef TAEDA_HEADER
#undef TAEDA_DEVICE_HEADER
  if (how == Compiling::ForHost) return of_host;
  return all;
}
unsigned long long headers_number() {
  static const unsigned long long number = [] {
    unsigned long long made = kNumberOfNothing;
    for (const Compiling how : {Compiling::AtRunTime, Compiling::ForHost})
      for (const Header& header : headers(how)) made = number_of_text(header.text, number_of_text(header.name, made));
    return made;
  }();
  return number;
}

}  // namespace taeda::cuda
