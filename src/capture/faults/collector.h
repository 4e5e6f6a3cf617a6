/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector of new memory: which stacks make a process's resident memory grow. Adds the types
 * faulted_anon/bytes, faulted_file/bytes and faulted_shmem/bytes, which are flows.
 */
#pragma once

#include "capture/bpf/collector.h"

extern const struct collector_kind faults_collector;
