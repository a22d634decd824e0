/* Failures on request: "allocate:3" makes the third allocation from now on fail. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const char* const kNames[FAIL_KINDS] = {"allocate", "copy", "launch", "kernel", "synchronize"};
static atomic_llong countdown[FAIL_KINDS]; /* 0: never */

bool sim_must_fail(int what) {
  return atomic_load(&countdown[what]) > 0 && atomic_fetch_sub(&countdown[what], 1) == 1;
}

/* The `nth` event of a kind fails, counted from 1; 0 takes the request back. Gives 0, or -1 for an unknown kind. */
TAEDA_PLUGIN_EXPORT int32_t sim_fail(const char* what, int64_t nth) {
  for (int i = 0; i < FAIL_KINDS; ++i)
    if (strcmp(what, kNames[i]) == 0) return atomic_store(&countdown[i], nth), 0;
  return -1;
}

/* From the environment: TAEDA_SIM_FAIL="kernel:5,allocate:9". */
void sim_read_failures(void) {
  const char* text = getenv("TAEDA_SIM_FAIL");
  while (text && *text) {
    const char* colon = strchr(text, ':');
    if (!colon) return;
    for (int i = 0; i < FAIL_KINDS; ++i)
      if (strncmp(text, kNames[i], (size_t)(colon - text)) == 0 && strlen(kNames[i]) == (size_t)(colon - text))
        atomic_store(&countdown[i], atoll(colon + 1));
    text = strchr(colon, ',');
    if (text) ++text;
  }
}
