// SPDX-License-Identifier: Apache-2.0
// The URL of a store on ClickHouse.

#include "store/clickhouse/address.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

#define PASSWORD_BYTES_MAX 4096

void clickhouse_address_release(struct clickhouse_address *address)
{
    for (size_t i = 0; i < address->host_count; i++)
        free(address->hosts[i]);
    if (address->password)
        explicit_bzero(address->password, strlen(address->password));
    free(address->user);
    free(address->database);
    free(address->password);
    free(address->ca_file);
    free(address->cluster);
    free(address->policy);
    free(address->cold_volume);
    *address = (struct clickhouse_address){0};
}

static bool is_name(const char *text, size_t length)
{
    bool good = length && length <= 64 && !isdigit((unsigned char)text[0]);
    for (size_t i = 0; good && i < length; i++)
        good = isalnum((unsigned char)text[i]) || text[i] == '_';
    return good;
}

/* "%2F" is "/". */
static char *decode(const char *text, size_t length)
{
    char *decoded = memory_alloc(length + 1), *out = decoded;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '%' && i + 2 < length && isxdigit((unsigned char)text[i + 1]) &&
            isxdigit((unsigned char)text[i + 2])) {
            char digits[3] = {text[i + 1], text[i + 2], 0};
            *out++ = (char)strtoul(digits, NULL, 16);
            i += 2;
        } else {
            *out++ = text[i];
        }
    }
    *out = '\0';
    return decoded;
}

static int read_password(const char *path, char **ret_password, struct error *error)
{
    _cleanup_buffer_ struct buffer content = {0};
    int r = file_read(path, PASSWORD_BYTES_MAX, &content, error);
    if (r < 0)
        return r;
    char *password = memory_strndup(buffer_text(&content), content.length);
    password[strcspn(password, "\r\n")] = '\0';
    explicit_bzero(content.data, content.length);
    free(*ret_password);
    *ret_password = password;
    return 0;
}

static int read_number(const char *name, const char *text, uint64_t least, uint64_t most,
                       uint64_t *ret_number, struct error *error)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || number < least || number > most)
        return error_set(error, -EINVAL,
                         "%s of the store's URL must be a number from %llu to %llu.", name,
                         (unsigned long long)least, (unsigned long long)most);
    *ret_number = number;
    return 0;
}

static int set_text(char **text, char *value)
{
    free(*text);
    *text = value;
    return 0;
}

static int apply(struct clickhouse_address *address, const char *name, char *value,
                 struct error *error)
{
    uint64_t number = 0;
    int r;
    if (!strcmp(name, "password_file")) {
        r = read_password(value, &address->password, error);
        free(value);
        return r;
    }
    if (!strcmp(name, "ca"))
        return set_text(&address->ca_file, value);
    char **names[] = {&address->cluster, &address->policy, &address->cold_volume};
    static const char *const name_settings[] = {"cluster", "policy", "cold_volume"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (!strcmp(name, name_settings[i])) {
            set_text(names[i], value);
            return is_name(value, strlen(value))
                       ? 0
                       : error_set(error, -EINVAL,
                                   "%s of the store's URL must consist of letters, digits and '_'.",
                                   name);
        }
    if (!strcmp(name, "tls")) {
        r = read_number(name, value, 0, 1, &number, error);
        address->tls = number;
    } else if (!strcmp(name, "memory")) {
        r = read_number(name, value, 1 << 20, INT64_MAX, &number, error);
        address->memory_bytes = number;
    } else if (!strcmp(name, "timeout")) {
        r = read_number(name, value, 1, 3600, &number, error);
        address->timeout_s = (unsigned)number;
    } else if (!strcmp(name, "quorum")) {
        r = read_number(name, value, 1, CLICKHOUSE_HOSTS_MAX, &number, error);
        address->quorum = (unsigned)number;
    } else if (!strcmp(name, "cold_days")) {
        r = read_number(name, value, 1, 10000, &number, error);
        address->cold_days = (unsigned)number;
    } else {
        r = error_set(error, -EINVAL,
                      "The store's URL has an unknown setting, %.60s; use password_file, tls, ca, "
                      "memory, timeout, cluster, quorum, policy, cold_days or cold_volume.",
                      name);
    }
    free(value);
    return r;
}

static int apply_all(struct clickhouse_address *address, const char *text, struct error *error)
{
    int r = 0;
    while (!r && *text) {
        size_t length = strcspn(text, "&"), name_length = strcspn(text, "=&");
        char name[64];
        if (name_length == length || name_length >= sizeof(name))
            return error_set(error, -EINVAL,
                             "Settings of the store's URL have the form "
                             "NAME=VALUE, separated by '&'.");
        memcpy(name, text, name_length);
        name[name_length] = '\0';
        r = apply(address, name, decode(text + name_length + 1, length - name_length - 1), error);
        text += length + (text[length] != '\0');
    }
    return r;
}

static int add_hosts(struct clickhouse_address *address, const char *text, size_t length,
                     struct error *error)
{
    static const char allowed[] = "-.:[]_";
    while (length) {
        const char *comma = memchr(text, ',', length);
        size_t part = comma ? (size_t)(comma - text) : length;
        bool good = part > 0 && address->host_count < CLICKHOUSE_HOSTS_MAX;
        for (size_t i = 0; good && i < part; i++)
            good = isalnum((unsigned char)text[i]) || strchr(allowed, text[i]);
        if (!good)
            return error_set(error, -EINVAL,
                             "The store's URL requires 1 to %d hosts, separated by commas.",
                             CLICKHOUSE_HOSTS_MAX);
        struct buffer host = {0};
        const char *bracket = memchr(text, ']', part);
        const char *port = memrchr(text, ':', part);
        buffer_add(&host, text, part);
        if (!port || (bracket && port < bracket))
            buffer_add_text(&host, address->tls ? ":8443" : ":8123");
        address->hosts[address->host_count++] = memory_strdup(buffer_text(&host));
        buffer_release(&host);
        text += part + (comma != NULL);
        length -= part + (comma != NULL);
    }
    return 0;
}

int clickhouse_address_parse(const char *rest, struct clickhouse_address *ret_address,
                             struct error *error)
{
    struct clickhouse_address address = {0};
    /* Without the URL itself: who gets its form wrong may have put a password into it. */
    static const char form[] =
        "The store's URL must have the form clickhouse://USER@HOST:8123/DATABASE.";
    if (strncmp(rest, "//", 2))
        return error_set(error, -EINVAL, form);
    const char *host = rest + 2, *end = host + strcspn(host, "/?");
    const char *at = memrchr(host, '@', (size_t)(end - host));
    const char *database = *end == '/' ? end + 1 : end;
    size_t database_length = strcspn(database, "?");
    const char *settings = database + database_length;
    address.user = at ? decode(host, (size_t)(at - host)) : memory_strdup("default");
    address.database =
        database_length ? memory_strndup(database, database_length) : memory_strdup("assay");
    host = at ? at + 1 : host;
    int r = 0;
    if (host == end)
        r = error_set(error, -EINVAL, form);
    else if (strchr(address.user, ':'))
        r = error_set(error, -EINVAL,
                      "Passwords don't belong into the store's URL; use the "
                      "setting password_file=FILE.");
    else if (!is_name(address.database, strlen(address.database)))
        r = error_set(error, -EINVAL,
                      "The database of the store's URL must consist of letters, digits and '_'.");
    if (!r && *settings)
        r = apply_all(&address, settings + 1, error);
    if (!r && !address.cold_days != !address.cold_volume)
        r = error_set(error, -EINVAL,
                      "cold_days and cold_volume of the store's URL require each other.");
    if (!r && address.quorum && !address.cluster)
        r = error_set(error, -EINVAL, "quorum of the store's URL requires cluster.");
    if (!r)
        r = add_hosts(&address, host, (size_t)(end - host), error);
    if (r < 0) {
        clickhouse_address_release(&address);
        return r;
    }
    *ret_address = address;
    return 0;
}
