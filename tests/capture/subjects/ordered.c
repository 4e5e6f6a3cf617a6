// SPDX-License-Identifier: Apache-2.0
// A plugin: order.h as a library.
#include "order.h"
