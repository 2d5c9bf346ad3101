// SPDX-License-Identifier: MIT
#pragma once
#include "detail/thrust.h"
