// What a program is told that looks for places where the host waits for a device: set_sync_debug_mode.
#pragma once

namespace taeda::cuda {

enum class Waits : int { Silent, Told, Refused };
/// Says that the program waits; not 0 where that is to be an error.
using TellOfWait = int (*)();

void tell_of_waits(Waits mode, TellOfWait tell);
/// Asked before the host waits for a copy; false: it must not.
bool may_wait();

}  // namespace taeda::cuda
