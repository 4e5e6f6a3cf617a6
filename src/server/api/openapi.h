/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API's document, docs/openapi.json, and the page that tools/openapi_page.py makes of it,
 * compiled into the program. Neither ends in a NUL.
 */
#pragma once

#include <stddef.h>

extern const unsigned char openapi_json[];
extern const size_t openapi_json_length;
extern const unsigned char openapi_page[];
extern const size_t openapi_page_length;
