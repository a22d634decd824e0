// Where in Python programs events come from, and how threads of Python join a recording.
#include "places.h"

namespace profiler {
namespace {
constexpr int kDeepest = 128;
}

Stacks::~Stacks() {
  for (const Node& node : nodes_) Py_XDECREF(node.code);
}

uint32_t Stacks::here() {
  Node path[kDeepest];
  int depth = 0;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame && depth < kDeepest) {
    path[depth++] = {0, PyFrame_GetLasti(frame), PyFrame_GetCode(frame)};
    Py_SETREF(frame, PyFrame_GetBack(frame));
  }
  Py_XDECREF(frame);
  uint32_t number = 0;
  while (depth-- > 0) {
    Node& node = path[depth];
    node.caller = number;
    const auto [place, fresh] = numbers_.try_emplace(node, uint32_t(nodes_.size()));
    number = place->second;
    if (fresh) nodes_.push_back(node);
    else Py_DECREF(node.code);
  }
  return number;
}

PyObject* Stacks::list() const {
  PyObject* all = PyList_New(Py_ssize_t(nodes_.size()));
  for (size_t i = 0; all && i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    PyObject* item = node.code ? Py_BuildValue("(IOOi)", node.caller, node.code->co_filename, node.code->co_qualname,
                                               PyCode_Addr2Line(node.code, node.instruction))
                               : Py_BuildValue("(Issi)", 0u, "", "", 0);
    if (!item) Py_CLEAR(all);
    else PyList_SET_ITEM(all, Py_ssize_t(i), item);
  }
  return all;
}

// Note [Threads of Python]
// A thread joins a recording at the first thing that it does in Python after the start. For that it gets a profiling
// function, which takes itself away when it is called. Threads that are being profiled by somebody else are left alone.

namespace {
std::shared_ptr<Session> inviting;

int accept_invitation(PyObject*, PyFrameObject*, int, PyObject*) {
  PyEval_SetProfile(nullptr, nullptr);
  if (inviting) join(inviting);
  return 0;
}
}  // namespace

void invite(const std::shared_ptr<Session>& session) {
  inviting = session;
  PyThreadState* self = PyThreadState_Get();
  for (PyThreadState* other = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); other;
       other = PyThreadState_Next(other))
    if (other != self && !other->c_profilefunc) _PyEval_SetProfile(other, accept_invitation, nullptr);
}

void invite_no_more() noexcept { inviting.reset(); }

}  // namespace profiler
