// All named derivative formulas; one header per family.
#pragma once
#include "taeda/autograd/formulas/shape.h"
