// Notes of what devices did.
#include "driver/activities.h"

#include <time.h>

#include <utility>

namespace taeda::cuda {

void Activities::start(uint64_t most) {
  const std::lock_guard held(lock_);
  noted_.clear();
  most_ = most;
  dropped_ = 0;
  on_ = true;
}
void Activities::note(Activity activity) {
  const std::lock_guard held(lock_);
  if (noted_.size() >= most_) return void(++dropped_);
  activity.name = names_.emplace(activity.name).first->c_str();
  noted_.push_back(activity);
}
void Activities::drop(uint64_t count) {
  const std::lock_guard held(lock_);
  dropped_ += count;
}
std::vector<Activity> Activities::stop(uint64_t& dropped) {
  const std::lock_guard held(lock_);
  on_ = false;
  dropped = std::exchange(dropped_, 0);
  return std::exchange(noted_, {});
}

int64_t host_time() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

std::atomic<uint64_t (*)()> origin_source = nullptr;
namespace {
thread_local bool handed_on = false;
thread_local uint64_t handed_origin = 0;
}  // namespace

uint64_t work_origin() {
  if (handed_on) return handed_origin;
  const auto ask = origin_source.load(std::memory_order_relaxed);
  return ask ? ask() : 0;
}
HandedOn::HandedOn(uint64_t origin) {
  handed_on = true;
  handed_origin = origin;
}
HandedOn::~HandedOn() { handed_on = false; }

std::string copy_name(Side from, Side to, bool between_devices) {
  const auto text = [](Side side) {
    return side == Side::Pageable ? "Pageable"
           : side == Side::Pinned ? "Pinned"
           : side == Side::Device ? "Device"
                                  : "Unknown";
  };
  const auto letter = [&](Side side) { return between_devices ? "P" : side == Side::Device ? "D" : "H"; };
  return std::string("Memcpy ") + letter(from) + "to" + letter(to) + " (" + text(from) + " -> " + text(to) + ")";
}

}  // namespace taeda::cuda
