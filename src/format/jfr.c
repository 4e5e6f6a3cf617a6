// SPDX-License-Identifier: Apache-2.0
#include "format/format.h"

const struct format format_jfr = {.name = "jfr", .summary = "", .extensions = ""};
