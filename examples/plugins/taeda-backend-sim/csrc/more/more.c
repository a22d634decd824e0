/* What the device offers beyond the first afternoon, where the running taeda knows of it. */
#include "more.h"

/* An older taeda looks at the beginning of the struct alone. */
void sim_offer_more(taeda_backend* backend) {
  if (TAEDA_API_HAS(api, activity_origin)) sim_offer_activities(backend);
  if (TAEDA_API_HAS(api, device_current)) sim_offer_collectives(backend), sim_offer_graphs(backend);
}
int32_t sim_register_more(void) {
  if (TAEDA_API_HAS(api, device_current)) TRY(sim_register_attention());
  TRY(sim_register_small());
  return sim_register_layouts();
}
