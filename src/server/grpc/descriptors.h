/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions of the services, as protobuf's own descriptors: tools/descriptors.py makes them of
 * docs/proto at build time.
 */
#pragma once

struct descriptor_file {
    const char *name;
    const unsigned char *bytes; /* a FileDescriptorProto */
    unsigned long length;
    const char *const *names;    /* of messages, enums, services and methods; NULL at the end */
    const char *const *services; /* the same */
    const unsigned char *needs;  /* files that it needs, by their place; 255 at the end */
};

/* Those that a file needs come before it. */
extern const struct descriptor_file descriptor_files[];
extern const unsigned long descriptor_file_count;
