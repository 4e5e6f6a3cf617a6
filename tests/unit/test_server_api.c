// SPDX-License-Identifier: Apache-2.0
// The API's document is true: it has every route of the server and no other, and for those that
// refuse unknown parameters, every parameter and no other. What roles they need agrees as well.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/json.h"
#include "server/api/openapi.h"
#include "server/handler/parameters.h"
#include "server/server.h"

#define OPERATIONS_MAX 128

struct operation {
    char method[16], pattern[128], role[16];
    char parameters[1024]; /* of the query, each with a blank after it */
    bool open;             /* takes others, too */
};

static struct operation operations[OPERATIONS_MAX];
static size_t operation_count;

static void copy(char *to, size_t room, const char *data, size_t length)
{
    assert_true(length < room);
    memcpy(to, data, length);
    to[length] = 0;
}

/* {name} is the pattern's star. */
static void copy_pattern(char *to, size_t room, const struct json_string *path)
{
    size_t length = 0;
    for (size_t i = 0; i < path->length; i++) {
        assert_true(length + 1 < room);
        to[length++] = path->data[i] == '{' ? '*' : path->data[i];
        while (path->data[i] == '{' || (length && to[length - 1] == '*' && path->data[i] != '}'))
            i++;
    }
    to[length] = 0;
}

static void add_parameter(struct operation *operation, const char *name, size_t length)
{
    size_t have = strlen(operation->parameters);
    assert_true(have + length + 2 < sizeof(operation->parameters));
    memcpy(operation->parameters + have, name, length);
    strcpy(operation->parameters + have + length, " ");
}

/* A reference's last part is the parameter's name: see components of the document. */
static void read_parameters(struct json *json, struct operation *operation)
{
    static const char shared[] = "#/components/parameters/";
    struct json_string key, text;
    json_array(json);
    while (json_next_element(json) > 0) {
        char name[64] = "", where[16] = "query";
        json_object(json);
        while (json_next_key(json, &key) > 0) {
            if (json_is(&key, "name") && json_string(json, &text) >= 0)
                copy(name, sizeof(name), text.data, text.length);
            else if (json_is(&key, "in") && json_string(json, &text) >= 0)
                copy(where, sizeof(where), text.data, text.length);
            else if (json_is(&key, "$ref") && json_string(json, &text) >= 0) {
                assert_true(text.length > strlen(shared));
                copy(name, sizeof(name), text.data + strlen(shared), text.length - strlen(shared));
            }
        }
        if (!strcmp(where, "query"))
            add_parameter(operation, name, strlen(name));
    }
}

static void read_operation(struct json *json, struct operation *operation)
{
    struct json_string key, text;
    json_object(json);
    while (json_next_key(json, &key) > 0) {
        if (json_is(&key, "x-role") && json_string(json, &text) >= 0)
            copy(operation->role, sizeof(operation->role), text.data, text.length);
        else if (json_is(&key, "x-other-parameters"))
            operation->open = true;
        else if (json_is(&key, "parameters"))
            read_parameters(json, operation);
    }
}

static void read_paths(struct json *json)
{
    struct json_string path, method;
    json_object(json);
    while (json_next_key(json, &path) > 0) {
        char pattern[128];
        copy_pattern(pattern, sizeof(pattern), &path);
        json_object(json);
        while (json_next_key(json, &method) > 0) {
            assert_true(operation_count < OPERATIONS_MAX);
            struct operation *operation = &operations[operation_count++];
            strcpy(operation->pattern, pattern);
            for (size_t i = 0; i < method.length && i < 15; i++)
                operation->method[i] = (char)(method.data[i] - 'a' + 'A');
            read_operation(json, operation);
        }
    }
}

static int read_document(void **state)
{
    (void)state;
    struct source source;
    struct json json;
    struct json_string key;
    struct error error = {0};
    if (source_open_memory(&source, "document", openapi_json, openapi_json_length, 1u << 24,
                           &error) < 0)
        return -1;
    json_init(&json, &source, &error);
    int r = json_object(&json);
    while (r >= 0 && (r = json_next_key(&json, &key)) > 0)
        if (json_is(&key, "paths"))
            read_paths(&json);
    if (r >= 0)
        r = json_end(&json);
    json_release(&json);
    source_release(&source);
    if (r < 0)
        fprintf(stderr, "%s\n", error.text);
    return r < 0 ? -1 : 0;
}

/* Puts the route's roles into *ret_roles, which may be NULL. */
static bool has_route(const char *method, const char *pattern, unsigned *ret_roles)
{
    for (size_t i = 0; i < server_route_count(); i++) {
        struct http_route route = server_route_at(i);
        if (strcmp(route.method, method) || strcmp(route.pattern, pattern))
            continue;
        if (ret_roles)
            *ret_roles = route.roles;
        return true;
    }
    return false;
}

static const struct operation *find_operation(const char *method, const char *pattern)
{
    for (size_t i = 0; i < operation_count; i++)
        if (!strcmp(operations[i].method, method) && !strcmp(operations[i].pattern, pattern))
            return &operations[i];
    return NULL;
}

/* The pages of the web interface are no API. */
static bool is_page(const char *pattern)
{
    static const char *const pages[] = {"/",          "/explore",  "/compare",    "/function",
                                        "/functions", "/files",    "/recordings", "/agents",
                                        "/symbols",   "/alerts",   "/findings",   "/explain",
                                        "/triage",    "/requests", "/saved",      "/assets/*"};
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        if (!strcmp(pattern, pages[i]))
            return true;
    return false;
}

/* A route may be one of several that the document has as one, with a star for their last part. */
static bool is_documented(const char *method, const char *pattern)
{
    char wide[256];
    const char *slash = strrchr(pattern, '/');
    snprintf(wide, sizeof(wide), "%.*s/*", (int)(slash - pattern), pattern);
    return find_operation(method, pattern) ||
           (find_operation(method, wide) && has_route(method, wide, NULL));
}

static void every_route_is_documented(void **state)
{
    (void)state;
    assert_true(server_route_count() > 20);
    for (size_t i = 0; i < server_route_count(); i++) {
        struct http_route route = server_route_at(i);
        if (!is_page(route.pattern) && !is_documented(route.method, route.pattern))
            fail_msg("docs/openapi.json lacks %s %s", route.method, route.pattern);
    }
}

static void every_documented_route_is_there(void **state)
{
    (void)state;
    assert_true(operation_count > 20);
    for (size_t i = 0; i < operation_count; i++)
        if (!has_route(operations[i].method, operations[i].pattern, NULL))
            fail_msg("the server has no %s %s", operations[i].method, operations[i].pattern);
}

static void roles_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < operation_count; i++) {
        const struct operation *operation = &operations[i];
        unsigned found;
        unsigned role = !strcmp(operation->role, "ingest")  ? HTTP_ROLE_INGEST
                        : !strcmp(operation->role, "read")  ? HTTP_ROLE_READ
                        : !strcmp(operation->role, "admin") ? HTTP_ROLE_ADMIN
                                                            : HTTP_ROLE_ANY;
        if (has_route(operation->method, operation->pattern, &found) && found != role)
            fail_msg("%s needs another role than %s", operation->pattern, operation->role);
    }
}

static void parameters_agree(void **state)
{
    (void)state;
    unsigned strict = 0;
    for (size_t i = 0; i < operation_count; i++) {
        const struct operation *operation = &operations[i];
        const char *names = parameters_of(operation->method, operation->pattern);
        if (operation->open == (names != NULL))
            fail_msg("whether %s refuses other parameters isn't what the document says",
                     operation->pattern);
        if (!names)
            continue;
        strict++;
        char accepted[1024], one[64];
        snprintf(accepted, sizeof(accepted), "%s ", names);
        for (const char *at = names; *at;) {
            size_t length = strcspn(at, " ");
            snprintf(one, sizeof(one), "%.*s ", (int)length, at);
            if (!strstr(operation->parameters, one))
                fail_msg("docs/openapi.json lacks %sof %s", one, operation->pattern);
            at += length + (at[length] == ' ');
        }
        for (const char *at = operation->parameters; *at;) {
            size_t length = strcspn(at, " ");
            snprintf(one, sizeof(one), "%.*s ", (int)length, at);
            if (!strstr(accepted, one))
                fail_msg("%s doesn't take %s", operation->pattern, one);
            at += length + 1;
        }
    }
    assert_true(strict > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_documented),
        cmocka_unit_test(every_documented_route_is_there),
        cmocka_unit_test(roles_agree),
        cmocka_unit_test(parameters_agree),
    };
    return cmocka_run_group_tests(tests, read_document, NULL);
}
