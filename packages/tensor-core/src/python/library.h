// Between boxed values and Python objects, by the types of a schema.
#pragma once
#include "python/internal.h"
#include "taeda/library.h"
#include "taeda/python_lock.h"

namespace taeda::py {

PyObject* to_python(const Value& value);
/// A tuple of converted values.
Object to_tuple(const Values& values, size_t from = 0);
/// `op` and the argument's name stand in the TypeError.
Value from_python(PyObject* o, const SchemaArgument& argument, const char* op);
/// Results of a Python callback: one object, or a tuple of as many as the schema has. TypeError that names the schema's
/// operator and `who` ("the kernel of mypkg") for anything else; `mask` is that of may_be_absent().
Values results_from_python(PyObject* o, const Schema& schema, std::string_view who, int64_t mask = 0);
/// After a kernel from Python whose outputs, the first of `arguments`, the core had made: what it has returned is put
/// into them, unless it is None. Results must have the shape, dtype and device of their outputs, and those must be as
/// they were before (aliases of them). TypeError for anything else.
void settle_outputs(const OpEntry& op, const Schema& schema, PyObject* found, const Values& arguments,
                    const std::vector<Tensor>& before, std::string_view who);
/// Results as a caller sees them: None, one object, or a tuple.
PyObject* results_to_python(const Values& results);

/// A text of a plug-in's: what is no UTF-8 in it is shown as a replacement character. May fail as Python's functions
/// do.
PyObject* shown_text(std::string_view text) noexcept;

/// A Python callable that C++ may copy and drop on any thread.
class Callback {
 public:
  explicit Callback(PyObject* callable);
  /// Calls with the lock held; CarriedError when it raises.
  Object operator()(const Object& arguments) const;

 private:
  std::shared_ptr<PyObject> callable_;
};

/// What the innermost level in force says of a tensor without memory that belongs to it.
struct History {
  bool recorded = false, leaf = true;
};
History carrier_history(PyObject* tensor);

/// Memory whose functions are methods of a Python object: allocate(index, nbytes) gives an address, release(index,
/// address), write(index, address, bytes), read(index, address, writable bytes). TypeError where one is missing.
std::shared_ptr<OwnMemory> memory_of_python(PyObject* owner);

extern PyMethodDef library_functions[];
extern PyMethodDef operator_functions[];
extern PyMethodDef library_autograd_functions[];
extern PyMethodDef level_functions[];
bool init_operator(PyObject* module);

}  // namespace taeda::py
