// The switch for deterministic algorithms.
#include "taeda/deterministic.h"

#include <string>

#include "taeda/error.h"
#include "taeda/warn.h"

namespace taeda {

std::atomic<Determinism> detail::determinism{Determinism::Any};
std::atomic<bool> detail::fills_unwritten{true};

void alert_not_deterministic(const char* op) {
  const Determinism wanted = determinism();
  if (wanted == Determinism::Any) return;
  const std::string text = std::string(op) + ": has no deterministic implementation here, but " +
                           "use_deterministic_algorithms(True) was called";
  check(wanted != Determinism::Required, ErrorKind::Runtime, text,
        "; call use_deterministic_algorithms(True, warn_only=True) to be warned only");
  warn(text);
}

}  // namespace taeda
