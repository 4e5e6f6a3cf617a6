/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels of the pod that the agent itself is in, from a file of a downward API volume: for an
 * agent beside the containers of one pod, which can't or may not ask the kubelet. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "label/labels.h"

#define POD_FILE_UID_BYTES 37

struct pod_file {
    const char *path;                 /* NULL: none; outlives it */
    char own_pod[POD_FILE_UID_BYTES]; /* the agent's; "": its cgroup doesn't say */
    int64_t looked_ns;
    bool complained;
    struct labels labels; /* service_name and version, as far as the file has them */
};

/* Of lines KEY="VALUE", with the escapes of Go's quoted strings; other lines are skipped. */
void pod_labels_read(const char *text, size_t length, struct labels *ret_labels);

void pod_file_init(struct pod_file *file, const char *path, const char *proc);
void pod_file_release(struct pod_file *file);

/* Sets what is not there yet, if that pod is the agent's own. The file is read again now and then.
 */
void pod_file_label(struct pod_file *file, const char *pod_uid, int64_t now_ns,
                    struct labels *labels);
