// Decompositions: operators in terms of others, for backends that have no kernel of their own.
//
// Unlike composites these operators are one kernel where speed counts. What is written here runs below the layers, so
// it needs no derivative, and in float32 where elements are halves.
#pragma once
#include "taeda/boxing.h"

namespace taeda {

/// From the inputs of an operator to its results.
using Decomposition = Values (*)(Values inputs);

TAEDA_API void add_decomposition(const char* op, Decomposition decomposition);
/// Null where there is none.
TAEDA_API Decomposition decomposition_of(std::string_view op);

struct AddDecomposition {
  AddDecomposition(const char* op, Decomposition decomposition) { add_decomposition(op, decomposition); }
};

/// `TAEDA_DECOMPOSE(name, "op", function)` for a typed function with the arguments of the schema.
#define TAEDA_DECOMPOSE(name, op, function) static const AddDecomposition name##_entry(op, &Boxed<&function>::call);

}  // namespace taeda
