// SPDX-License-Identifier: Apache-2.0
#include "format/format.h"

const struct format format_speedscope = {.name = "speedscope", .summary = "", .extensions = ""};
