// What a thread leaves behind goes when it ends.
#pragma once

namespace taeda {

/// Runs `Clean` when this thread ends. False once it has: what would be made now would stay for ever.
template <void (*Clean)() noexcept>
bool at_thread_end() noexcept {
  struct AtEnd {
    bool gone = false;
    ~AtEnd() {
      gone = true;
      Clean();
    }
  };
  static thread_local AtEnd at_end;
  return !at_end.gone;
}

}  // namespace taeda
