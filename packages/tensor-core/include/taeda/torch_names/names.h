// PyTorch's namespaces as names for taeda's, for extensions whose sources are left as they are.
#pragma once
#include <taeda/extension.h>

namespace torch = taeda;
namespace at = taeda;
namespace c10 = taeda;
