// SPDX-License-Identifier: Apache-2.0
// The fuzzer of the server's settings and of files of targets: whatever was wrong, what was read
// can be used and released, and targets that come of it have an address and a service.

#include <string.h>

#include "server/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void expand(const struct scrape_job *job, const struct target_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        for (size_t k = 0; k < groups->list[i].count; k++) {
            struct discovered target;
            struct error error = {0};
            int r = discovery_target(job, &groups->list[i], groups->list[i].addresses[k], &target,
                                     &error);
            require(r < 0 ? error.text[0] != 0 : r <= 1);
            if (r <= 0)
                continue;
            require(!strncmp(target.base, "http", 4) && !strpbrk(target.query, " \n#?"));
            require(labels_get(&target.labels, "service_name") != NULL || !*job->name);
            for (size_t n = 0; n < target.labels.count; n++)
                require(strncmp(target.labels.list[n].name, "__", 2));
            discovered_release(&target);
        }
}

static void read_groups(const struct scrape_job *job, const char *name, const uint8_t *data,
                        size_t length)
{
    struct target_groups groups;
    struct error error = {0};
    if (target_groups_read(name, (const char *)data, length, &groups, &error) < 0) {
        require(error.text[0]);
        return;
    }
    expand(job, &groups);
    target_groups_release(&groups);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct scrape_job job = {.name = "fuzz", .scheme = "http", .path_prefix = ""};
    struct yaml_tree tree = {0};
    struct error error = {0};
    read_groups(&job, "fuzz.json", data, length);
    read_groups(&job, "fuzz.yml", data, length);
    if (yaml_tree_read("fuzz", (const char *)data, length, &tree, &error) < 0)
        return 0;
    struct problems problems = {.file = "fuzz"};
    struct server_options options;
    struct settings settings;
    server_options_defaults(&options);
    settings_open(&settings, &problems, tree.root, "The file");
    server_options_read(&options, &settings);
    settings_close(&settings);
    require(options.class_count >= 1 && options.class_count <= SERVER_CLASSES_MAX);
    for (size_t i = 0; i < options.scrape->count; i++)
        expand(&options.scrape->list[i], &options.scrape->list[i].groups);
    server_options_release(&options);
    problems_release(&problems);
    yaml_tree_release(&tree);
    return 0;
}
