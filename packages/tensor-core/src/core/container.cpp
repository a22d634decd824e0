// Memory limits of control groups.
#include "core/container.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

namespace taeda::detail {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

/// The number in a file; kNone where there is no file, or "max" in it.
size_t limit_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  size_t bytes = kNone;
  if (!(file >> text)) return kNone;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && end == text.data() + text.size() ? bytes : kNone;
}

/// The smallest limit of a group and of those around it, up to the mounted root: inside of a container the path may be
/// that of the machine, of which only the root can be seen.
size_t limit_along(const std::string& mount, std::string group, const char* file) {
  size_t least = limit_in(mount + "/" + file);
  for (; group.size() > 1; group.resize(group.rfind('/')))
    least = std::min(least, limit_in(mount + group + "/" + file));
  return least;
}

bool names_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

}  // namespace

size_t container_memory(const std::string& root) {
  size_t least = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGE_SIZE));
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // NUMBER:CONTROLLERS:GROUP
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) least = std::min(least, limit_along(root + "/sys/fs/cgroup", group, "memory.max"));
    else if (names_memory(controllers))
      least = std::min(least, limit_along(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

}  // namespace taeda::detail
