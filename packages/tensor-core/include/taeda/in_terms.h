// Errors from inside a composite, in the words of the operator that was called.
#pragma once
#include <string_view>

#include "taeda/dispatch.h"
#include "taeda/error.h"

namespace taeda::stub {

/// Ends a composite in which an operator that it is made of has failed, while that error is being handled: names the
/// one that was called, and its own arguments. `names` holds "inner=own", separated by blanks, for arguments of those
/// inside. Where an argument has no counterpart, or something is missing that only the inner operator's name tells,
/// both operators are named.
[[noreturn, gnu::cold]] TAEDA_API void in_terms_of(const OpEntry& op, const Error& error, std::string_view names);

}  // namespace taeda::stub
