// Warnings to whoever runs the program.
#pragma once
#include <string>

#include "taeda/error.h"
#include "taeda/export.h"

namespace taeda {

/// Shows a warning at the Python code that runs, whatever locks the thread holds of the interpreter; an exception of
/// the binding where the user turned warnings into errors. Set by the binding; without one warnings are not shown.
extern TAEDA_API void (*host_warning)(const char* text);

/// `warn("var: ", reason)`, of the parts that `fail` takes.
template <class... Parts>
[[gnu::cold]] void warn(const Parts&... parts) {
  if (host_warning) host_warning(detail::concat(parts...).c_str());
}

}  // namespace taeda
