// The text of what kernels are written with, for compilers at run time. setup.py puts it into the library.
#pragma once
#include <span>

namespace taeda::cuda {

struct Header {
  const char* name;  // as it is included
  const char* text;
};
/// For devices, by NVRTC, which has no headers of its own; or for the host.
enum class Compiling { AtRunTime, ForHost };
std::span<const Header> headers(Compiling how);
/// A number that changes with any of the texts.
unsigned long long headers_number();

}  // namespace taeda::cuda
