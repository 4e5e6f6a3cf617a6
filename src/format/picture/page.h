/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame-graph page as the web build made it, compiled into the program: a template into which
 * html.c inserts the title and the data. Built from web/ by tools/embed.py; not NUL-terminated.
 */
#pragma once

#include <stddef.h>

extern const unsigned char flame_page[];
extern const size_t flame_page_length;
