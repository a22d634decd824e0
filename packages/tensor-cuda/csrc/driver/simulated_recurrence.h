// Recurrent layers on the host, by their definition, for the simulated driver.
#pragma once
#include "driver/recurrence.h"

namespace taeda::cuda {

/// Whether sizes fit together as cuDNN wants it.
bool is_valid(const Recurrence& layers);
/// Whether all is there that such a run reads and writes.
bool is_valid(const RecurrencePlan& plan, const RecurrenceRun& run);
/// Where weights lie, and how much is kept for the gradient.
RecurrencePlan recurrence_plan(const Recurrence& layers);
/// `shift` is what lies between addresses of the device and the host's.
void recur_on_host(const RecurrencePlan& plan, const RecurrenceRun& run, uint64_t shift);

}  // namespace taeda::cuda
