// SPDX-License-Identifier: Apache-2.0
// Pieces of SQL for ClickHouse: literals and the conditions that most queries share.

#include "store/clickhouse/sql.h"

void sql_text_n(struct buffer *sql, const char *text, size_t length)
{
    buffer_add_char(sql, '\'');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c >= 0x7f || c == '\'' || c == '\\')
            buffer_printf(sql, "\\x%02X", c);
        else
            buffer_add_char(sql, (char)c);
    }
    buffer_add_char(sql, '\'');
}

void sql_text(struct buffer *sql, const char *text)
{
    sql_text_n(sql, text, strlen(text));
}

void sql_name(struct buffer *sql, const char *name)
{
    buffer_add_char(sql, '`');
    buffer_add_text(sql, name);
    buffer_add_char(sql, '`');
}

void sql_in(struct buffer *sql, const char *name, const uint64_t *list, size_t count)
{
    if (!count) {
        buffer_add_text(sql, "1 = 0");
        return;
    }
    buffer_add_text(sql, name);
    buffer_add_text(sql, " IN (");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buffer_add_char(sql, ',');
        buffer_add_u64(sql, list[i]);
    }
    buffer_add_char(sql, ')');
}

void sql_range(struct buffer *sql, int64_t from_ns, int64_t to_ns)
{
    int64_t last = to_ns == INT64_MIN ? to_ns : to_ns - 1;
    buffer_printf(sql,
                  " AND day >= toDate(%u) AND day <= toDate(%u) AND hour >= %u AND hour <= %u"
                  " AND time >= %lld AND time <= %lld",
                  day_of(from_ns), MIN(day_of(last) + DAYS_AHEAD, DAY_LAST), hour_of(from_ns),
                  hour_of(last), (long long)(from_ns < 0 ? 0 : from_ns),
                  (long long)(last < 0 ? -1 : last));
}

void sql_periods(struct buffer *sql, int64_t from_ns, int64_t to_ns)
{
    buffer_printf(sql, " AND period >= %u AND period <= %u", period_of(from_ns),
                  period_of(to_ns == INT64_MIN ? to_ns : to_ns - 1));
}
