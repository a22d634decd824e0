// Where in the program a call was made, for errors that come out later.
#include "abi/bridge.h"
#include "taeda/python_api.h"

namespace taeda::abi {

// A number is that of the line with that of the operator behind it: nothing is kept here.
constexpr int kOpBits = 16;

uint64_t call_site(taeda_op op) {
  const uint64_t line = python_api.user_line ? python_api.user_line() : 0;
  return line << kOpBits | (op ? reinterpret_cast<const OpEntry*>(op)->id : 0);
}

int32_t set_error_at(int32_t status, const char* message, uint64_t site) {
  const int32_t failed = guarded([&] {
    std::string text = message ? message : "";
    const auto line = uint32_t(site >> kOpBits);
    const size_t place = site & ((1u << kOpBits) - 1);
    const OpEntry* op = place && place < all_ops().size() ? all_ops()[place] : nullptr;
    const std::string at = line && python_api.line_text ? python_api.line_text(line) : "";
    if (op || !at.empty())
      text +=
          std::string(" (queued") + (op ? std::string(" by ") + op->name : "") + (at.empty() ? "" : " at " + at) + ")";
    set_error(status, text.c_str());
  });
  return failed == TAEDA_OK ? status : failed;
}

}  // namespace taeda::abi
