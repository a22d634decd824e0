/* Where in the user's program work was queued, told with errors that come out when somebody waits. */
#include "more.h"

uint64_t sim_site(taeda_op op) { return TAEDA_API_HAS(api, set_error_at) ? api->call_site(op) : 0; }
int32_t sim_complain(int32_t status, const char* text, uint64_t site) {
  return site ? api->set_error_at(status, text, site) : api->set_error(status, text);
}
