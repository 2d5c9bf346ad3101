// SPDX-License-Identifier: MIT
#pragma once
#include "glut.h"
