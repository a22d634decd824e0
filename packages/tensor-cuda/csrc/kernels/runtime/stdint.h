// See cstdint beside it.
#pragma once
#include <cstdint>
