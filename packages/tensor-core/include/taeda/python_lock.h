// The interpreter's lock, for compiled extensions; the only header of taeda that knows Python.
#pragma once
#include <Python.h>

#include "taeda/host_exit.h"

namespace taeda {

/// Holds the interpreter's lock for a scope, on any thread; cheap when it is held already.
class Gil {
 public:
  Gil() : state_(not_unwound([] { return PyGILState_Ensure(); })) {}
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace taeda
