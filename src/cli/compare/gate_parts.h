/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of `assay gate`. */
#pragma once

#include "cli/compare/sides.h"

/* `assay gate bisect`; returns the exit code. */
int gate_bisect(int argc, char **argv);
