/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of the pprof codec, and the field numbers of its profile.proto that both use. */
#pragma once

#include "format/format.h"

enum {
    PPROF_SAMPLE_TYPE = 1,
    PPROF_SAMPLE = 2,
    PPROF_MAPPING = 3,
    PPROF_LOCATION = 4,
    PPROF_FUNCTION = 5,
    PPROF_STRING = 6,
    PPROF_DROP_FRAMES = 7,
    PPROF_KEEP_FRAMES = 8,
    PPROF_TIME_NANOS = 9,
    PPROF_DURATION_NANOS = 10,
    PPROF_PERIOD_TYPE = 11,
    PPROF_PERIOD = 12,
    PPROF_COMMENT = 13,
    PPROF_DEFAULT_SAMPLE_TYPE = 14,
    PPROF_DOC_URL = 15,
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_TEXT = 2, LABEL_NUMBER = 3, LABEL_UNIT = 4 };
enum {
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILENAMES = 8,
    MAPPING_HAS_LINES = 9,
    MAPPING_HAS_INLINES = 10,
};
enum {
    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,
    LOCATION_FOLDED = 5,
};
enum { LINE_FUNCTION = 1, LINE_LINE = 2, LINE_COLUMN = 3 };
enum {
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILE = 4,
    FUNCTION_START_LINE = 5,
};

extern const struct format_phases pprof_phases;
int pprof_read_unresolved(struct source *source, uint64_t seed, struct profile *profile,
                          struct error *error);
int pprof_write(struct buffer *out, const struct profile *profile,
                const struct write_options *options, struct error *error);
