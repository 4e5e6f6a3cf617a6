// SPDX-License-Identifier: Apache-2.0
#include "format/format.h"

const struct format format_gperftools_cpu = {.name = "gperftools-cpu", .summary = "", .extensions = ""};
const struct format format_gperftools_heap = {.name = "gperftools-heap", .summary = "", .extensions = ""};
