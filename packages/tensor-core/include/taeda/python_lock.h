// The interpreter's lock, for compiled extensions; the only header of taeda that knows Python.
#pragma once
#include <Python.h>

#include "taeda/host_exit.h"
#include "taeda/parallel.h"

namespace taeda {

/// Note [Turns]
/// What the extensions keep (wrappers, lists of free ones, hooks, caches) is written for threads that take turns, as
/// the interpreter's lock makes them. A free-threaded Python has no such lock. There each entry from Python takes a
/// `Turn`: a critical section of the one object `host_lock.turns`, which Python itself suspends whenever the thread
/// waits or gives the lock up for long work (`Unlocked`), as it would the lock. A callback into a program's own code
/// runs outside of it (`called_out`), where another thread could have run under the lock, too. Python code, and the
/// kernels of operators that are long enough, so run side by side; the short lines between them do not.
///
/// With the lock gone, an object whose last reference was dropped waits for a turn to die, and can still be reached by
/// a pointer that owns nothing. Such pointers are followed with `try_share`.
class Turn {
 public:
#ifdef Py_GIL_DISABLED
  Turn() noexcept : taken_(host_lock.turns && !is_ours()) {
    if (taken_) PyCriticalSection_Begin(&section_, static_cast<PyObject*>(host_lock.turns));
  }
  ~Turn() {
    if (taken_) PyCriticalSection_End(&section_);
  }

 private:
  /// Whether the innermost critical section of this thread is a turn already.
  static bool is_ours() noexcept {
    constexpr uintptr_t kInactive = 1, kTags = 3;
    const uintptr_t innermost = PyThreadState_GetUnchecked()->critical_section;
    if (!(innermost & ~kTags) || (innermost & kInactive)) return false;
    return reinterpret_cast<const PyCriticalSection*>(innermost & ~kTags)->_cs_mutex ==
           &static_cast<PyObject*>(host_lock.turns)->ob_mutex;
  }

  PyCriticalSection section_;
  bool taken_;
#else
  Turn() noexcept {}
  ~Turn() {}
#endif
 public:
  Turn(const Turn&) = delete;
};

/// Holds the interpreter's lock for a scope, on any thread; cheap when it is held already.
class Gil {
 public:
  Gil() = default;
  Gil(const Gil&) = delete;

 private:
  struct Held {
    PyGILState_STATE state = not_unwound([] { return PyGILState_Ensure(); });
    ~Held() { PyGILState_Release(state); }
  };
  Held held_;
  Turn turn_;
};

/// Runs what calls a program's own Python code.
template <class Call>
decltype(auto) called_out(Call&& call) {
#ifdef Py_GIL_DISABLED
  // Inside a critical section of its own: the turn, once suspended, is not taken again before that one ends.
  class Outside {
   public:
    Outside() noexcept {
      PyCriticalSection_Begin(&section_, &nobodys_);
      PyEval_RestoreThread(PyEval_SaveThread());
    }
    ~Outside() { PyCriticalSection_End(&section_); }

   private:
    PyObject nobodys_{};  // only its mutex is looked at
    PyCriticalSection section_;
  };
  const Outside outside;
#endif
  return not_unwound(call);
}

/// A new reference by a pointer that owns none; null where the object is dying. The caller has a turn.
inline PyObject* try_share(void* pointer) noexcept {
  auto* object = static_cast<PyObject*>(pointer);
#if !defined(Py_GIL_DISABLED)
  return Py_NewRef(object);
#elif PY_VERSION_HEX >= 0x030E0000
  return PyUnstable_TryIncRef(object) ? object : nullptr;
#else
  const uint32_t local = __atomic_load_n(&object->ob_ref_local, __ATOMIC_RELAXED);
  if (local == _Py_IMMORTAL_REFCNT_LOCAL) return object;
  if (object->ob_tid == _Py_ThreadId()) {
    __atomic_store_n(&object->ob_ref_local, local + 1, __ATOMIC_RELAXED);
    return object;
  }
  Py_ssize_t shared = __atomic_load_n(&object->ob_ref_shared, __ATOMIC_RELAXED);
  do
    if (shared == 0 || shared == _Py_REF_MERGED) return nullptr;
  while (!__atomic_compare_exchange_n(&object->ob_ref_shared, &shared, shared + (Py_ssize_t(1) << _Py_REF_SHARED_SHIFT),
                                      false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return object;
#endif
}

/// Prepares a new object for `try_share`: other threads' looks at its count are then heeded when it dies.
inline void let_be_shared([[maybe_unused]] PyObject* object) noexcept {
#if !defined(Py_GIL_DISABLED)
#elif PY_VERSION_HEX >= 0x030E0000
  PyUnstable_EnableTryIncRef(object);
#else
  Py_ssize_t none = 0;  // no other flag says more
  __atomic_compare_exchange_n(&object->ob_ref_shared, &none, Py_ssize_t(_Py_REF_MAYBE_WEAKREF), false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
#endif
}

/// Lets what waits for a turn have it, such as an object that is dying.
inline void pass() noexcept { PyEval_RestoreThread(PyEval_SaveThread()); }

/// The object that a pointer without ownership shows, which dies by clearing it; null once it has.
inline PyObject* share_living(void* const& pointer) noexcept {
  while (pointer) {
    if (PyObject* object = try_share(pointer)) return object;
    pass();
  }
  return nullptr;
}

/// Says that an extension module takes turns, so that a free-threaded Python leaves its lock off.
inline void needs_no_lock([[maybe_unused]] PyObject* module) noexcept {
#ifdef Py_GIL_DISABLED
  PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
}

}  // namespace taeda
