// SPDX-License-Identifier: MIT
#pragma once
#include "algorithms.h"
#include "vectors.h"
