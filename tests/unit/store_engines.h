/* SPDX-License-Identifier: Apache-2.0 */
/* A store on each engine, for cases that all engines have to pass. */
#pragma once

#include <unistd.h>

#include "store/store.h"
#include "store_samples.h"
#include "unit.h"

struct fixture {
    struct store *store;
    char *folder;
};

enum engine { IN_MEMORY, EMBEDDED, ON_CLICKHOUSE };

static int open_clickhouse(const struct store_options *options, struct store **ret_store,
                           struct error *error)
{
    static unsigned databases;
    char url[256];
    const char *settings = getenv("TEST_STORE_SETTINGS"); /* "?cluster=NAME" */
    snprintf(url, sizeof(url), "%s/test_%d_%u%s", getenv("TEST_STORE_URL"), getpid(), databases++,
             settings ? settings : "");
    int r = store_init(url, error);
    return r < 0 ? r : store_open(url, options, ret_store, error);
}

static int open_store(enum engine engine, void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    char name[] = "/tmp/assay-store.XXXXXX";
    struct store_options options = {.now = test_clock, .commit_ms = 1, .directory = name};
    struct error error;
    if (!mkdtemp(name))
        return -1;
    fixture->folder = strdup(name);
    int r = engine == EMBEDDED    ? store_open_embedded(&options, &fixture->store, &error)
            : engine == IN_MEMORY ? store_open_memory(&options, &fixture->store, &error)
                                  : open_clickhouse(&options, &fixture->store, &error);
    if (r < 0)
        fprintf(stderr, "%s\n", error.text);
    *state = fixture;
    return r;
}

static int in_memory(void **state)
{
    return open_store(IN_MEMORY, state);
}

static int embedded(void **state)
{
    return open_store(EMBEDDED, state);
}

static int on_clickhouse(void **state)
{
    return open_store(ON_CLICKHOUSE, state);
}

static int close_store(void **state)
{
    struct fixture *fixture = *state;
    char command[64];
    store_close(fixture->store);
    snprintf(command, sizeof(command), "rm -rf '%s'", fixture->folder);
    free(fixture->folder);
    free(fixture);
    return system(command) ? -1 : 0;
}
