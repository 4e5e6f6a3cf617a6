// SPDX-License-Identifier: Apache-2.0
// Reads a process's environment: OpenTelemetry's two variables, and those that the configuration
// allows by name.

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "agent/identity/identity.h"
#include "base/memory.h"

#define NAME_BYTES_MAX 128
#define SERVICE_VARIABLE "OTEL_SERVICE_NAME"
#define ATTRIBUTES_VARIABLE "OTEL_RESOURCE_ATTRIBUTES"

static const struct {
    const char *attribute, *label;
} known[] = {
    {"service.name", LABEL_SERVICE_NAME},
    {"service.version", "version"},
    {"service.instance.id", "instance"},
    {"service.namespace", "namespace"},
    {"deployment.environment", "environment"},
    {"deployment.environment.name", "environment"},
    {"cloud.region", "region"},
    {"k8s.namespace.name", "namespace"},
    {"k8s.pod.name", "pod"},
    {"k8s.container.name", "container"},
};

static const char *label_of(const char *attribute, size_t length)
{
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (strlen(known[i].attribute) == length && !memcmp(known[i].attribute, attribute, length))
            return known[i].label;
    return NULL;
}

void environment_attribute(const char *key, const char *value, struct labels *labels)
{
    const char *label = label_of(key, strlen(key));
    if (label && *value && strlen(value) <= ENVIRONMENT_VALUE_BYTES)
        labels_set(labels, label, value);
}

static void trim(const char **text, size_t *length)
{
    while (*length && isspace((unsigned char)**text))
        ++*text, --*length;
    while (*length && isspace((unsigned char)(*text)[*length - 1]))
        --*length;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Values are percent-encoded. */
static void set_decoded(struct labels *labels, const char *label, const char *value, size_t length)
{
    char text[ENVIRONMENT_VALUE_BYTES + 1];
    size_t used = 0;
    if (length > ENVIRONMENT_VALUE_BYTES)
        return;
    for (size_t i = 0; i < length; i++) {
        bool encoded = value[i] == '%' && i + 2 < length && digit(value[i + 1]) >= 0 &&
                       digit(value[i + 2]) >= 0;
        text[used++] = encoded ? (char)(digit(value[i + 1]) * 16 + digit(value[i + 2])) : value[i];
        i += encoded ? 2 : 0;
    }
    labels_set_n(labels, label, strlen(label), text, used);
}

/* "key=value,key=value". What is not known by its key stays behind. */
static void take_attributes(struct labels *labels, const char *text, size_t length)
{
    while (length) {
        const char *comma = memchr(text, ',', length);
        size_t part = comma ? (size_t)(comma - text) : length;
        const char *equals = memchr(text, '=', part);
        if (equals) {
            const char *key = text, *value = equals + 1;
            size_t key_length = (size_t)(equals - text), value_length = part - key_length - 1;
            trim(&key, &key_length);
            trim(&value, &value_length);
            const char *label = label_of(key, key_length);
            if (label)
                set_decoded(labels, label, value, value_length);
        }
        text += part + (comma != NULL);
        length -= part + (comma != NULL);
    }
}

static void take_variable(struct labels *labels, const char *name, size_t name_length,
                          const char *value, size_t length, const struct globs *allowed)
{
    char label[NAME_BYTES_MAX + sizeof("__meta_env_")];
    char plain[NAME_BYTES_MAX + 1];
    if (name_length > NAME_BYTES_MAX || length > ENVIRONMENT_VALUE_BYTES || !allowed->count)
        return;
    snprintf(plain, sizeof(plain), "%.*s", (int)name_length, name);
    if (!globs_match(allowed, plain))
        return;
    snprintf(label, sizeof(label), "__meta_env_%s", plain);
    labels_set_n(labels, label, strlen(label), value, length);
}

void environment_identify(const char *content, size_t length, const struct globs *allowed,
                          struct labels *labels)
{
    const char *service = NULL, *attributes = NULL;
    size_t service_length = 0, attributes_length = 0;
    while (length) {
        size_t line = strnlen(content, length);
        const char *equals = memchr(content, '=', line);
        if (equals) {
            size_t name_length = (size_t)(equals - content);
            const char *value = equals + 1;
            size_t value_length = line - name_length - 1;
            if (name_length == strlen(SERVICE_VARIABLE) &&
                !memcmp(content, SERVICE_VARIABLE, name_length)) {
                service = value;
                service_length = value_length;
            } else if (name_length == strlen(ATTRIBUTES_VARIABLE) &&
                       !memcmp(content, ATTRIBUTES_VARIABLE, name_length)) {
                attributes = value;
                attributes_length = value_length;
            } else {
                take_variable(labels, content, name_length, value, value_length, allowed);
            }
        }
        line += line < length; /* the NUL */
        content += line;
        length -= line;
    }
    if (attributes)
        take_attributes(labels, attributes, attributes_length);
    /* The variable of its own comes before the attribute. */
    if (service && service_length <= ENVIRONMENT_VALUE_BYTES) {
        trim(&service, &service_length);
        if (service_length)
            labels_set_n(labels, LABEL_SERVICE_NAME, strlen(LABEL_SERVICE_NAME), service,
                         service_length);
    }
}
