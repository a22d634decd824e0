// Errors on their way through C: a status, a text per thread, and the exception itself where both ends are taeda's.
#include <new>

#include "abi/bridge.h"
#include "taeda/linalg_error.h"
#include "taeda/python_api.h"

namespace taeda::abi {

constinit thread_local bool exception_kept = false;
constinit thread_local uint32_t errors_noted = 0;
constinit thread_local uint32_t errors_settled = 0;

namespace {

struct Kept {
  std::string text;
  int32_t status = TAEDA_OK;
  bool said = false;             // by the plug-in itself, through set_error
  uint32_t number = 0;           // the how-manieth of this thread
  std::exception_ptr exception;  // set when it came out of taeda: passed on unchanged it is thrown again as it was
};
Kept& kept() {
  static thread_local Kept instance;
  return instance;
}

/// A class that C has no status for is told as the one that it belongs to.
int32_t status_of(ErrorKind kind) { return kind == kLinAlgError ? TAEDA_E_RUNTIME : int32_t(kind) + 1; }
static_assert(int(ErrorKind::Type) + 1 == TAEDA_E_TYPE &&
              int(ErrorKind::NotImplemented) + 1 == TAEDA_E_NOT_IMPLEMENTED &&
              int(ErrorKind::Buffer) + 1 == TAEDA_E_BUFFER);

int32_t keep(int32_t status, const char* text, std::exception_ptr exception) noexcept {
  try {
    kept().text = text;
  } catch (...) {
    kept().text.clear();
  }
  kept().status = status;
  kept().said = false;
  kept().number = ++errors_noted;
  kept().exception = std::move(exception);
  exception_kept = kept().exception != nullptr;
  return status;
}

}  // namespace

int32_t set_error(int32_t status, const char* message) noexcept {
  keep(status, message ? message : "", nullptr);
  kept().said = true;
  return status;
}
const char* last_error() noexcept { return kept().text.c_str(); }

void forget_exception() noexcept {
  kept().exception = nullptr;
  exception_kept = false;
}

int32_t keep_error() noexcept {
  // A Python error must not stay set in the interpreter while C goes on.
  if (python_api.carry_error) {
    ErrorKind kind = ErrorKind::Runtime;
    std::string text;
    if (std::exception_ptr carried = python_api.carry_error(kind, text))
      return keep(status_of(kind), text.c_str(), std::move(carried));
  }
  try {
    throw;
  } catch (const Error& e) {
    return keep(status_of(e.kind()), e.what(), std::current_exception());
  } catch (const std::bad_alloc& e) {
    return keep(TAEDA_E_MEMORY, "out of memory", std::current_exception());
  } catch (const std::exception& e) {
    return keep(TAEDA_E_RUNTIME, e.what(), std::current_exception());
  } catch (...) {
    return keep(TAEDA_E_RUNTIME, "unknown error", std::current_exception());
  }
}

void error_object(int32_t status) {
  try {
    throw_error(status, "taeda");
  } catch (...) {
    if (python_api.set_error) python_api.set_error();
  }
}

void throw_error(int32_t status, const std::string& what, uint32_t before) {
  Kept now = std::move(kept());
  kept() = {};
  exception_kept = false;
  // An error that the function met on its way belongs to the status that it gave; what it said itself is meant in any
  // case.
  const bool meant = now.number > before && (now.status == status || now.said);
  if (meant && now.exception) std::rethrow_exception(now.exception);
  const bool known = status >= TAEDA_E_TYPE && status <= TAEDA_E_BUFFER;
  const ErrorKind kind = known ? ErrorKind(status - 1) : ErrorKind::Runtime;
  const std::string text =
      meant && !now.text.empty() ? now.text : "gave status " + std::to_string(status) + " without a text";
  if (status == TAEDA_DECLINED) throw KernelDeclined(what + ": the kernel has no way for these arguments");
  if (text.starts_with(what + ": ")) fail(kind, text);  // it names the operator itself
  fail(kind, what, ": ", text);
}

}  // namespace taeda::abi
