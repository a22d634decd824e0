// Macros under the names that PyTorch's extensions use. Part of taeda/extension.h.
#pragma once
#include "taeda/extension/library.h"

#if !defined(TORCH_EXTENSION_NAME) && defined(TAEDA_EXTENSION_NAME)
#define TORCH_EXTENSION_NAME TAEDA_EXTENSION_NAME
#endif
#define TORCH_CHECK TAEDA_CHECK
#define TORCH_CHECK_WITH_STATUS_(status, condition, ...)                                  \
  do {                                                                                    \
    if (!(condition)) throw ::taeda::Error(status, ::taeda::detail::joined(__VA_ARGS__)); \
  } while (false)
#define TORCH_CHECK_INDEX(condition, ...) TORCH_CHECK_WITH_STATUS_(TAEDA_E_INDEX, condition, __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) TORCH_CHECK_WITH_STATUS_(TAEDA_E_VALUE, condition, __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) TORCH_CHECK_WITH_STATUS_(TAEDA_E_TYPE, condition, __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  TORCH_CHECK_WITH_STATUS_(TAEDA_E_NOT_IMPLEMENTED, condition, __VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) TAEDA_CHECK((a) == (b))
#define TORCH_CHECK_NE(a, b) TAEDA_CHECK((a) != (b))
#define TORCH_CHECK_LT(a, b) TAEDA_CHECK((a) < (b))
#define TORCH_CHECK_LE(a, b) TAEDA_CHECK((a) <= (b))
#define TORCH_CHECK_GT(a, b) TAEDA_CHECK((a) > (b))
#define TORCH_CHECK_GE(a, b) TAEDA_CHECK((a) >= (b))
#define TORCH_FN(function) &function
#define TORCH_SELECTIVE_NAME(name) name
#define TORCH_SELECTIVE_SCHEMA(schema) schema
#define TORCH_INTERNAL_ASSERT TAEDA_CHECK
#define AT_ASSERT TAEDA_CHECK
#define AT_ASSERTM TAEDA_CHECK
#define AT_CHECK TAEDA_CHECK
#define AT_ERROR(...) throw ::taeda::Error(TAEDA_E_RUNTIME, ::taeda::detail::joined(__VA_ARGS__))
#define TORCH_LIBRARY TAEDA_LIBRARY
#define TORCH_LIBRARY_IMPL TAEDA_LIBRARY_IMPL
#define TORCH_LIBRARY_FRAGMENT TAEDA_LIBRARY_FRAGMENT

// Of the further types that a switch names (half, bfloat16) there is no number of C++: tensors of them are refused.
#define AT_DISPATCH_FLOATING_TYPES TAEDA_DISPATCH_FLOATING_TYPES
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF TAEDA_DISPATCH_FLOATING_TYPES
#define AT_DISPATCH_FLOATING_TYPES_AND(more, type, name, ...) TAEDA_DISPATCH_FLOATING_TYPES(type, name, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(more, most, type, name, ...) \
  TAEDA_DISPATCH_FLOATING_TYPES(type, name, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(more, most, last, type, name, ...) \
  TAEDA_DISPATCH_FLOATING_TYPES(type, name, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES TAEDA_DISPATCH_ALL_TYPES
#define AT_DISPATCH_ALL_TYPES_AND(more, type, name, ...) TAEDA_DISPATCH_ALL_TYPES(type, name, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(more, most, type, name, ...) TAEDA_DISPATCH_ALL_TYPES(type, name, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(more, most, last, type, name, ...) TAEDA_DISPATCH_ALL_TYPES(type, name, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES TAEDA_DISPATCH_INTEGRAL_TYPES
