// What devices do, for profilers (activities_start and activities_stop of the table that taeda is given).
#pragma once
#include "taeda/abi.h"

namespace taeda::cuda {

/// Where this taeda knows of activities.
void offer_activities(taeda_backend& backend);

}  // namespace taeda::cuda
