/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of libassay. */
#ifndef ASSAY_INTERNAL_H
#define ASSAY_INTERNAL_H

#define ASSAY_KEYS_MAX 256

/* Work that happens once in a process. */
void assay_prepare(void);
void assay_publish_begin(void);

/* Around a fork: nothing may be half written in the child, which publishes memory of its own. */
void assay_fork_begin(void);
void assay_fork_parent(void);
void assay_fork_child(void);

#endif
