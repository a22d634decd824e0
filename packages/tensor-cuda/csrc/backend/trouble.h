// What went wrong on devices, in memory that host and device share.
#pragma once
#include "kernels/base.h"

namespace taeda::cuda {

/// The device's; made when it is first asked for. Throws std::bad_alloc.
Trouble* trouble_of(int device);
/// After a wait: the status of what went wrong since the last one, with its text set; TAEDA_OK if nothing did.
int32_t trouble_found(int device);
int32_t trouble_found();  // on any device

}  // namespace taeda::cuda
