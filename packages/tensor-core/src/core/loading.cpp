// What this thread has registered since it began to load plug-ins.
#include "core/loading.h"

#include <vector>

#include "taeda/backend.h"
#include "taeda/error.h"

namespace taeda {
namespace {

struct Load {
  std::vector<BackendId> made;
  std::vector<std::function<void()>> undo;
};
thread_local std::vector<Load> loads;

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void begin_loading() { loads.emplace_back(); }

void end_loading(Loaded how) {
  check(!loads.empty(), ErrorKind::Runtime, "end_loading: nothing is being loaded on this thread");
  Load done = std::move(loads.back());
  loads.pop_back();
  if (how == Loaded::Join && !loads.empty()) {
    append(loads.back().made, std::move(done.made));
    append(loads.back().undo, std::move(done.undo));
    return;
  }
  if (how == Loaded::Undo) {
    for (auto undo = done.undo.rbegin(); undo != done.undo.rend(); ++undo) (*undo)();
    for (auto id = done.made.rbegin(); id != done.made.rend(); ++id) withdraw_backend(*id);
  }
  for (BackendId id : done.made) detail::show_backend(id);
}

bool is_loading() noexcept { return !loads.empty(); }

void detail::note_loading(std::function<void()> undo) {
  if (is_loading()) loads.back().undo.push_back(std::move(undo));
}
void detail::note_loading(BackendId id) {
  if (is_loading()) loads.back().made.push_back(id);
}

}  // namespace taeda
