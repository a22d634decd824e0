// What the cast family asks before dispatch.
#pragma once
#include "infer/numbers.h"  // IWYU pragma: export
