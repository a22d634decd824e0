// The binding's hook for warnings.
#include "taeda/warn.h"

namespace taeda {

void (*host_warning)(const char* text) = nullptr;

}  // namespace taeda
