// What the sources of the extension share.
#pragma once
#include <taeda/extension.h>
#define FACTOR 1
