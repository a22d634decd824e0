// What an allocator did, one thing after the other, for those who ask for it.
#pragma once
#include <cstdint>
#include <deque>
#include <string>

#include "driver/driver.h"

namespace taeda::cuda {

class Trace {
 public:
  /// From now on the last so many are kept; none forgets all.
  void keep(uint64_t most);
  /// `action` lives as long as the process; `site` is whoever asked.
  void note(const char* action, Address address, uint64_t size, StreamHandle stream, uint64_t site = 0) {
    if (most_ > 0) [[unlikely]]
      put({action, address, size, stream, site, 0});
  }
  /// A JSON list.
  std::string text() const;

 private:
  struct Entry {
    const char* action;
    Address address;
    uint64_t size;
    StreamHandle stream;
    uint64_t site;
    int64_t microseconds;  // since 1970
  };
  void put(Entry entry);

  uint64_t most_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace taeda::cuda
