// Where in Python programs events come from, and how threads of Python join a recording.
#include "places.h"

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
#include "internal/pycore_frame.h"
#endif
#if PY_VERSION_HEX >= 0x030d0000
// Exported as ever, but declared among the interpreter's internals; the public functions set one's own thread or all.
extern "C" PyAPI_FUNC(int) _PyEval_SetProfile(PyThreadState*, Py_tracefunc, PyObject*);
#endif

namespace profiler {
namespace {
constexpr int kDeepest = 128;
}

Stacks::~Stacks() {
  for (const Node& node : nodes_) Py_XDECREF(node.code);
}

namespace {

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
/// The interpreter's own frames: asking for frame objects would make each function of the program slower to leave.
template <class Visit>
void each_frame(const Visit& visit) {
  const _PyInterpreterFrame* frame = PyThreadState_Get()->cframe->current_frame;
  for (; frame; frame = frame->previous) {
    PyCodeObject* code = frame->f_code;
    const bool begun =
        frame->owner == FRAME_OWNED_BY_GENERATOR || frame->prev_instr >= _PyCode_CODE(code) + code->_co_firsttraceable;
    const auto last = int(frame->prev_instr - _PyCode_CODE(code));
    if (begun && !visit(code, last < 0 ? -1 : last * int(sizeof(_Py_CODEUNIT)))) return;
  }
}
#else
template <class Visit>
void each_frame(const Visit& visit) {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  for (bool more = true; frame && more;) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    more = visit(code, PyFrame_GetLasti(frame));
    Py_DECREF(code);  // the frame has it too
    Py_SETREF(frame, PyFrame_GetBack(frame));
  }
  Py_XDECREF(frame);
}
#endif

}  // namespace

uint32_t Stacks::here(Path& path) {
  Step found[kDeepest];  // from the innermost
  int depth = 0;
  each_frame([&](PyCodeObject* code, int instruction) {
    found[depth++] = {code, instruction, 0};
    return depth < kDeepest;
  });
  size_t same = 0;
  while (same < path.size() && depth > 0 && path[same].code == found[depth - 1].code &&
         path[same].instruction == found[depth - 1].instruction)
    ++same, --depth;
  path.resize(same);
  uint32_t place = same ? path.back().place : 0;
  while (depth-- > 0) {
    Step& step = found[depth];
    step.place = place = place_of({place, step.instruction, step.code});
    path.push_back(step);
  }
  return place;
}

uint32_t Stacks::place_of(const Node& node) {
  Near& near = near_[Hash()(node) % kNear];
  if (near.node == node) return near.place;
  const auto [place, fresh] = numbers_.try_emplace(node, uint32_t(nodes_.size()));
  if (fresh) {
    nodes_.push_back(node);
    Py_INCREF(node.code);
  }
  near = {node, place->second};
  return place->second;
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
