/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of containers from the state files of their runtimes: Docker's, Podman's and CRI-O's lists,
 * and the bundles that containerd and CRI-O start containers from, whose annotations name the pod,
 * too. Only files are read, never a runtime's socket: access to that is equivalent to root.
 */
#pragma once

#include <stdbool.h>

#include "label/labels.h"

/* Sets container, pod and namespace if they are known and not set. `root` is where the host's files
 * are: "/proc/1/root". False: no runtime has files of it that can be read. */
bool container_label(const char *root, const char *container_id, struct labels *labels);
