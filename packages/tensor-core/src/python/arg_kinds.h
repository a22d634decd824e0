// What may stand for an argument, for binding it and for reading it.
#pragma once
#include <string>

#include "python/args.h"

namespace taeda::py {

/// What may stand for an int inside a list: also an integral tensor of one element that has dimensions.
bool is_item(PyObject* o);
/// The first item tells what the list is of; those after it may be what counts as an int in Python.
bool is_item_at(Py_ssize_t k, PyObject* o);
bool is_number(PyObject* o);
bool is_int_sequence(PyObject* o);

/// For messages: "a Tensor or None", and what was found.
const char* expected_text(ArgKind kind);
std::string type_text(PyObject* o);

}  // namespace taeda::py
