/* A plug-in that states the version it is compiled to state, for tests of the handshake. */
#include <taeda/abi.h>

#ifndef STATED_MAJOR
#define STATED_MAJOR TAEDA_ABI_MAJOR
#endif
#ifndef STATED_MINOR
#define STATED_MINOR TAEDA_ABI_MINOR
#endif

static int32_t start(const taeda_api* api) {
#ifdef FAILS
  return api->set_error(TAEDA_E_RUNTIME, "no licence for this machine");
#else
  return api->major == TAEDA_ABI_MAJOR && api->size >= sizeof(taeda_api) ? TAEDA_OK : TAEDA_E_RUNTIME;
#endif
}

static const taeda_plugin plugin = {
    .size = sizeof(taeda_plugin),
    .abi_major = STATED_MAJOR,
    .abi_minor = STATED_MINOR,
    .name = "handshake",
    .distribution = "taeda-handshake",
    .start = start,
};

TAEDA_PLUGIN_EXPORT const taeda_plugin* taeda_plugin_describe(void) { return &plugin; }
