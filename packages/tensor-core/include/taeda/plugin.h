// Plug-ins behind the C ABI: the handshake, and loading a shared library.
#pragma once
#include <string>

#include "taeda/abi.h"
#include "taeda/export.h"

namespace taeda {

/// Why a plug-in of `distribution` that was built for major.minor is refused, with the command that helps; empty when
/// it is not.
TAEDA_API std::string abi_refusal(uint32_t major, uint32_t minor, const std::string& distribution);
/// The table itself.
TAEDA_API const taeda_api& abi_table();
/// Checks versions and lets the plug-in register; a second call does nothing. Its error is thrown.
TAEDA_API void start_plugin(const taeda_plugin* plugin);
/// Opens a shared library and starts the plug-in in it. RuntimeError with the loader's own words when that fails.
TAEDA_API void load_plugin(const std::string& path);

}  // namespace taeda

extern "C" TAEDA_API int32_t taeda_abi_get(uint32_t major, uint32_t minor, const char* distribution,
                                           const taeda_api** api, const char** message);
