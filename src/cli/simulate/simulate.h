/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program assay-simulate. argv[0] is the command's name; each returns the exit
 * code. */
#pragma once

int simulate_fleet(int argc, char **argv);
int simulate_shop(int argc, char **argv);
