// SPDX-License-Identifier: Apache-2.0
#include "format/format.h"

const struct format format_perf_script = {.name = "perf-script", .summary = "", .extensions = ""};
