// Loading plug-ins: what a thread registers meanwhile is hidden from other threads, and can be taken back.
#pragma once
#include <functional>

#include "taeda/device.h"
#include "taeda/export.h"

namespace taeda {

/// How loading ends: take everything back, show it to all threads, or leave both to the loading around it.
enum class Loaded : uint8_t { Undo, Show, Join };

/// Begins and ends loading on this thread; loads may nest.
TAEDA_API void begin_loading();
TAEDA_API void end_loading(Loaded how);
TAEDA_API bool is_loading() noexcept;

namespace detail {
/// What takes back something that was registered just now; dropped when nothing is being loaded.
void note_loading(std::function<void()> undo);
/// The backend was registered just now.
void note_loading(BackendId id);
/// Lets all threads find a backend.
void show_backend(BackendId id);
}  // namespace detail

}  // namespace taeda
