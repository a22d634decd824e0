// Activities between the driver, which notes them, and taeda.
#include "backend/activities.h"

#include <exception>

#include "backend/machine.h"
#include "ops/call.h"

namespace taeda::cuda {
namespace {

using Tell = void (*)(void* to, const taeda_activity* activity);

int32_t activities_start(void*, uint64_t most) {
  own_machine()->driver().start_activities(most);
  return TAEDA_OK;
}
int32_t activities_stop(void*, Tell tell, void* to, uint64_t* dropped) try {
  std::vector<Activity> noted;
  *dropped = 0;
  // While work is recorded for a graph the host may not wait; what is not done then is left out.
  const bool may_wait = !own_machine()->graphs().any();
  const std::string why = own_machine()->driver().stop_activities(may_wait, noted, *dropped);
  for (const Activity& activity : noted) {
    taeda_activity told{};
    told.size = sizeof told;
    told.name = activity.name;
    told.kind = activity.kind;
    told.device = {backend_number, activity.device};
    told.stream = activity.stream;
    told.begin = activity.begin;
    told.end = activity.end;
    told.origin = activity.origin;
    told.bytes = activity.bytes;
    tell(to, &told);
  }
  return why.empty() ? TAEDA_OK : api->set_error(TAEDA_E_RUNTIME, why.c_str());
} catch (const std::exception& error) {
  return api->set_error(TAEDA_E_MEMORY, error.what());
}

}  // namespace

void offer_activities(taeda_backend& backend) {
  if (!TAEDA_API_HAS(api, activity_origin)) return;
  origin_source = api->activity_origin;
  backend.activities_start = activities_start;
  backend.activities_stop = activities_stop;
}

}  // namespace taeda::cuda
