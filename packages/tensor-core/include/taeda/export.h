// Symbol visibility of libtaeda: everything is hidden unless marked TAEDA_API.
#pragma once
#define TAEDA_API __attribute__((visibility("default")))
