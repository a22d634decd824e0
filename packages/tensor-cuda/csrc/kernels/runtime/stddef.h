// See cstdint beside it.
#pragma once
using size_t = decltype(sizeof(0));
#define offsetof(TYPE, MEMBER) __builtin_offsetof(TYPE, MEMBER)
