/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MD5 (RFC 1321), for relabelling's hashmod alone: whoever shards by it has to agree with
 * Prometheus. Not for anything that has to be safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

void md5(const void *bytes, size_t length, uint8_t ret_digest[16]);
