// What went wrong on devices, in memory that host and device share.
#pragma once
#include <string>

#include "kernels/base.h"

namespace taeda::cuda {

/// The device's; made when it is first asked for. Throws std::bad_alloc.
Trouble* trouble_of(int device);
/// After a wait: the status of what went wrong since the last one, with its text set; TAEDA_OK if nothing did.
int32_t trouble_found(int device);
int32_t trouble_found();  // on any device

/// The next wait of the host for the device ends with this text; of several the first.
void fail_later(int device, const std::string& text);

}  // namespace taeda::cuda
