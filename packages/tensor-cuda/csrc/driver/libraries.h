// Where NVIDIA's libraries lie.
#pragma once
#include <initializer_list>
#include <string>

namespace taeda::cuda {

/// Opens the first library that is found under one of the names. Looked at, in order: the folders of
/// TAEDA_CUDA_LIBRARIES (apart by colons; "none": no library at all), the folders of NVIDIA's wheels beside this
/// package (site-packages/nvidia/<part>/lib), what the system finds by itself, CUDA_HOME and /usr/local/cuda. Null
/// where there is none; `why` says then what was looked for, `path` else what was opened.
void* open_library(std::initializer_list<const char*> names, std::initializer_list<const char*> parts,
                   std::string& path, std::string& why);

}  // namespace taeda::cuda
