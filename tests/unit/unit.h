/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes: cmocka with what it needs before it, and a few checks. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"

/* Bytes that are exactly the text. */
#define assert_bytes(bytes, bytes_length, text)                                                    \
    do {                                                                                           \
        assert_int_equal(bytes_length, strlen(text));                                              \
        assert_memory_equal(bytes, text, strlen(text));                                            \
    } while (0)

#define assert_buffer(buffer, text) assert_bytes((buffer)->data, (buffer)->length, text)

/* The error's sentence has these words in it. */
#define assert_says(error, words)                                                                  \
    do {                                                                                           \
        if (!strstr((error)->text, words))                                                         \
            fail_msg("\"%s\" doesn't say \"%s\"", (error)->text, words);                           \
    } while (0)

/* A skipped case gives its reason; run.py counts one without a reason as a failure. */
#define skip_because(reason)                                                                       \
    do {                                                                                           \
        print_message("%s\n", reason);                                                             \
        skip();                                                                                    \
    } while (0)

/* An empty directory that is the working directory for one test. */
static inline int enter_folder(void **state)
{
    char name[] = "/tmp/assay-unit.XXXXXX";
    if (!mkdtemp(name) || chdir(name) < 0)
        return -1;
    *state = strdup(name);
    return 0;
}

static inline int leave_folder(void **state)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
    free(*state);
    return chdir("/") < 0 || system(command) != 0 ? -1 : 0;
}
