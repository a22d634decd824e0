// Macros under the names that PyTorch's extensions use. Part of taeda/extension.h.
#pragma once
#include "taeda/extension/library.h"

#if !defined(TORCH_EXTENSION_NAME) && defined(TAEDA_EXTENSION_NAME)
#define TORCH_EXTENSION_NAME TAEDA_EXTENSION_NAME
#endif
#define TORCH_CHECK TAEDA_CHECK
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
#define AT_DISPATCH_ALL_TYPES TAEDA_DISPATCH_ALL_TYPES
#define AT_DISPATCH_ALL_TYPES_AND(more, type, name, ...) TAEDA_DISPATCH_ALL_TYPES(type, name, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(more, most, type, name, ...) TAEDA_DISPATCH_ALL_TYPES(type, name, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES TAEDA_DISPATCH_INTEGRAL_TYPES
