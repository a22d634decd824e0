// How many cores the process may use: affinity, control groups, the environment.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "core/pool.h"

namespace taeda {

namespace {

/// Cores by a quota of the second version: "max 100000" or "150000 100000"; 0 for no limit.
double unified_quota(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && period > 0 ? quota / period : 0;
}

/// The same of the first version, with a file for each number and -1 for no limit.
double divided_quota(const std::string& folder) {
  std::ifstream first(folder + "/cpu.cfs_quota_us"), second(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  return first >> quota && second >> period && quota > 0 && period > 0 ? quota / period : 0;
}

/// The least quota of a group and of those that it lies in.
double least_quota(const std::string& mount, std::string group, double (*quota_of)(const std::string&)) {
  double least = 0;
  for (;;) {
    const double quota = quota_of(mount + (group == "/" ? "" : group));
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
    if (group.size() <= 1) return least;
    group.resize(std::max<size_t>(group.rfind('/'), 0));
    if (group.empty()) group = "/";
  }
}

bool names_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string one; std::getline(list, one, ',');)
    if (one == "cpu") return true;
  return false;
}

int cores_by_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

double quota_cores(const char* groups, const char* root) {
  double least = 0;
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {  // number:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.size() <= second + 1 || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    double quota = 0;
    if (controllers.empty()) quota = least_quota(root, group, unified_quota);
    else if (names_cpu(controllers)) quota = least_quota(std::string(root) + "/" + controllers, group, divided_quota);
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
  }
  return least;
}

int process_cores() {
  static constinit std::atomic<double> known{-1};  // no guarded object: Note [Locks and fork]
  double quota = known.load(std::memory_order_relaxed);
  if (quota < 0) known = quota = quota_cores(text_of("/proc/self/cgroup").c_str(), "/sys/fs/cgroup");
  const int cores = cores_by_affinity();
  return quota > 0 ? std::min(cores, int(std::ceil(quota))) : cores;
}

int available_cores() {
  int cores = process_cores();
  // OpenMP's own variable, as programs set it: a number, or a list of which the first one counts here.
  if (const char* wanted = std::getenv("OMP_NUM_THREADS"))
    if (const int count = std::atoi(wanted); count > 0) cores = std::min(cores, count);
  return cores;
}

}  // namespace taeda
