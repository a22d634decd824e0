// The line of the user's program that a thread is at: a number for each, whose text is made when an error needs it.
#include "python/internal.h"
#include "taeda/python_lock.h"
// After Python.h, which internal.h brings.
#include <frameobject.h>

#include <map>
#include <mutex>
#include <vector>

namespace taeda::py {
namespace {

using Place = std::pair<PyCodeObject*, int>;  // the code, kept, and its instruction
constexpr size_t kMostLines = 1 << 16;        // programs that make code without end are not followed without end

struct Lines {
  std::mutex lock;
  std::map<Place, uint32_t> numbers;
  std::vector<Place> places;
};
Lines& lines() {
  static auto* instance = new Lines;
  return *instance;
}

/// Whether a frame is of this library: its own functions call operators for the program.
bool is_own(PyFrameObject* frame) {
  const Object globals(PyFrame_GetGlobals(frame));
  PyObject* name = PyDict_GetItemString(globals.get(), "__name__");
  const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  const std::string_view found = text ? text : "";
  return found == "taeda" || found.starts_with("taeda.") || found.starts_with("taeda_");
}

/// The innermost frame that is the program's, owned; of the innermost one where all are the library's.
Object user_frame() {
  Object frame(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  if (!frame) return frame;
  Object outer = share(frame.get());
  while (outer && is_own(reinterpret_cast<PyFrameObject*>(outer.get())))
    outer.reset(reinterpret_cast<PyObject*>(PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(outer.get()))));
  return outer ? std::move(outer) : std::move(frame);
}

uint32_t number_of(const Place& place) {
  Lines& all = lines();
  const std::lock_guard guard(all.lock);
  if (const auto found = all.numbers.find(place); found != all.numbers.end()) return found->second;
  if (all.places.size() >= kMostLines) return 0;
  Py_INCREF(place.first);  // for ever: another code may not get its address
  all.places.push_back(place);
  return all.numbers[place] = uint32_t(all.places.size());
}

}  // namespace

uint32_t user_line() noexcept {
  // A thread that Python does not know has no frames.
  if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return 0;
  const Gil gil;
  try {
    const Object held = user_frame();
    if (!held) return 0;
    auto* frame = reinterpret_cast<PyFrameObject*>(held.get());
    const Object code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    return number_of({reinterpret_cast<PyCodeObject*>(code.get()), PyFrame_GetLasti(frame)});
  } catch (...) {
    PyErr_Clear();
    return 0;
  }
}

std::string line_text(uint32_t line) {
  Place place;
  {
    const std::lock_guard guard(lines().lock);
    if (line == 0 || line > lines().places.size()) return {};
    place = lines().places[line - 1];
  }
  const Gil gil;
  const char* file = PyUnicode_AsUTF8(place.first->co_filename);
  const char* function = PyUnicode_AsUTF8(place.first->co_name);
  if (!file || !function) PyErr_Clear();
  return std::string(file ? file : "?") + ":" + std::to_string(PyCode_Addr2Line(place.first, place.second)) + ", in " +
         (function ? function : "?");
}

}  // namespace taeda::py
