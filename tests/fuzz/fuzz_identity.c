// SPDX-License-Identifier: Apache-2.0
// What processes write about themselves: cgroup paths and environments; and the labels of a pod.
// The first byte says which.

#include <stdlib.h>
#include <string.h>

#include "agent/identity/identity.h"
#include "agent/identity/pod_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    static struct globs allowed;
    if (!allowed.count)
        globs_add(&allowed, "APP_*");
    if (!length)
        return 0;
    const char *content = (const char *)data + 1;
    length--;
    if (data[0] & 2) {
        struct labels labels = {0};
        pod_labels_read(content, length, &labels);
        for (size_t i = 0; i < labels.count; i++)
            if (strcmp(labels.list[i].name, "service_name") &&
                strcmp(labels.list[i].name, "version"))
                abort();
        labels_release(&labels);
        return 0;
    }
    if (data[0] & 1) {
        struct labels labels = {0};
        environment_identify(content, length, &allowed, &labels);
        /* Whatever is taken over is known by its name. */
        for (size_t i = 0; i < labels.count; i++)
            if (!strncmp(labels.list[i].name, "__meta_env_", 11) &&
                strncmp(labels.list[i].name, "__meta_env_APP_", 15))
                abort();
        labels_release(&labels);
        return 0;
    }
    struct cgroup_identity identity;
    size_t path_length;
    cgroup_identify(content, length, &identity);
    const char *path = cgroup_path(content, length, &path_length);
    if (path < content || path + path_length > content + length)
        abort();
    if (identity.container_id[0] && strlen(identity.container_id) != CONTAINER_ID_BYTES - 1)
        abort();
    return 0;
}
