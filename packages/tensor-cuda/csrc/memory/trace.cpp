// The last things that an allocator did.
#include "memory/trace.h"

#include <chrono>

namespace taeda::cuda {

void Trace::keep(uint64_t most) {
  most_ = most;
  if (most == 0) entries_.clear();
  while (entries_.size() > most_) entries_.pop_front();
}
void Trace::put(Entry entry) {
  using namespace std::chrono;
  entry.microseconds = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  if (entries_.size() == most_) entries_.pop_front();
  entries_.push_back(entry);
}
std::string Trace::text() const {
  std::string text = "[";
  for (const Entry& e : entries_) {
    const auto field = [&](const char* name, auto value) {
      text += std::string(", \"") + name + "\": " + std::to_string(value);
    };
    text += std::string(text.size() > 1 ? ", " : "") + "{\"action\": \"" + e.action + "\"";
    field("addr", e.address), field("size", e.size), field("stream", uintptr_t(e.stream));
    field("time_us", e.microseconds), field("site", e.site);
    text += "}";
  }
  return text + "]";
}

}  // namespace taeda::cuda
