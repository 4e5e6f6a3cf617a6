// SPDX-License-Identifier: Apache-2.0
// Libraries of functions: see library.h. web/flame/data/library.ts does the same; both are tested
// with tests/fixtures/libraries.tsv.

#include "profile/views/library.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

#define NAME_BYTES_MAX 256 /* of a name, what its library follows from */

static struct package nothing(void)
{
    return (struct package){"", 0};
}

static struct package constant(const char *text)
{
    return (struct package){text, strlen(text)};
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* ---- by binary ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcasecmp(text + length - tail, end);
}

static bool is_library_file(const char *binary)
{
    const char *at = binary;
    if (*binary == '[' || ends_with(binary, ".dylib") || ends_with(binary, ".dll"))
        return true;
    while ((at = strcasestr(at, ".so"))) {
        at += strlen(".so");
        if (!*at || *at == '.')
            return true;
    }
    return false;
}

/* ---- by file ---- */

/* The element of a path behind the last of these directories; a scope and a name are one. */
static struct package behind(const char *file, const char *directory)
{
    const char *found = NULL;
    for (const char *at = file; (at = strstr(at, directory)); at++)
        found = at + strlen(directory);
    if (!found)
        return nothing();
    size_t length = strcspn(found, "/");
    if (*found == '@' && found[length])
        length += 1 + strcspn(found + length + 1, "/");
    return (struct package){found, length};
}

/* The first elements of the paths of Go's own packages. */
static bool is_go(struct package package)
{
    static const char *const own[] = {
        "archive",  "bufio",   "bytes",   "cmp",      "compress", "container", "context", "crypto",
        "database", "debug",   "embed",   "encoding", "errors",   "expvar",    "flag",    "fmt",
        "go",       "hash",    "html",    "image",    "index",    "internal",  "io",      "iter",
        "log",      "maps",    "math",    "mime",     "net",      "os",        "path",    "plugin",
        "reflect",  "regexp",  "runtime", "slices",   "sort",     "strconv",   "strings", "structs",
        "sync",     "syscall", "testing", "text",     "time",     "unicode",   "unique",  "unsafe",
        "vendor",   "weak"};
    const char *slash = memchr(package.text, '/', package.length);
    size_t length = slash ? (size_t)(slash - package.text) : package.length;
    for (size_t i = 0; i < ARRAY_LENGTH(own); i++)
        if (strlen(own[i]) == length && !memcmp(own[i], package.text, length))
            return true;
    return false;
}

static bool has_version(const char *file)
{
    for (const char *at = file; (at = strstr(at, "@v")); at++)
        if (isdigit((unsigned char)at[2]))
            return true;
    return false;
}

/* Only what the name says. */
static struct package named_package(const struct calltree_function *function)
{
    struct calltree_function bare = *function;
    bare.file = bare.binary = "";
    return package_of(&bare);
}

static struct package go_library(const struct calltree_function *function)
{
    struct package package = named_package(function);
    if (is_go(package))
        return constant("go");
    return has_version(function->file) || strstr(function->file, "/vendor/") ||
                   strstr(function->file, "/pkg/mod/")
               ? package
               : nothing();
}

/* .../lib/python3.11/... */
static bool is_python(const char *file)
{
    static const char *const directories[] = {"/lib/python", "/lib64/python"};
    for (size_t i = 0; i < ARRAY_LENGTH(directories); i++)
        for (const char *at = file; (at = strstr(at, directories[i])); at++) {
            const char *after = at + strlen(directories[i]);
            if (isdigit((unsigned char)*after) && strchr(after, '/'))
                return true;
        }
    return begins(file, "<frozen ");
}

static struct package file_library(const struct calltree_function *function)
{
    const char *file = function->file;
    size_t length = strlen(file);
    if ((length > 3 && !strcmp(file + length - 3, ".go")) ||
        (length > 2 && !strcmp(file + length - 2, ".s")))
        return go_library(function);
    static const char *const packages[] = {"/node_modules/", "/gems/"};
    for (size_t i = 0; i < ARRAY_LENGTH(packages); i++)
        if (behind(file, packages[i]).length)
            return behind(file, packages[i]);
    if (begins(file, "node:"))
        return constant("node");
    struct package python = behind(file, "/site-packages/");
    if (!python.length)
        python = behind(file, "/dist-packages/");
    if (python.length > 3 && !memcmp(python.text + python.length - 3, ".py", 3))
        python.length -= 3;
    if (python.length)
        return python;
    if (is_python(file))
        return constant("python");
    if (strstr(file, "/.cargo/registry/")) {
        struct package crate = named_package(function);
        return crate.length ? crate : constant("cargo");
    }
    return begins(file, "/rustc/") ? constant("rust") : nothing();
}

/* ---- by name ---- */

/* Java's packages, with dots or slashes between their parts. */
static bool is_below(const struct calltree_function *function, const char *package)
{
    size_t length = strlen(package);
    if (function->length <= length || length >= NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((function->name[i] == '/' ? '.' : function->name[i]) != package[i])
            return false;
    return function->name[length] == '.' || function->name[length] == '/';
}

static struct package name_library(const struct calltree_function *function)
{
    static const char *const native[] = {"std::", "core::", "alloc::"};
    static const char *const jvm[] = {"java",
                                      "javax",
                                      "jdk",
                                      "sun",
                                      "com.sun",
                                      "jakarta",
                                      "kotlin",
                                      "kotlinx",
                                      "scala",
                                      "groovy",
                                      "clojure",
                                      "reactor",
                                      "io.netty",
                                      "io.grpc",
                                      "io.micrometer",
                                      "io.opentelemetry",
                                      "org.apache",
                                      "org.eclipse",
                                      "org.hibernate",
                                      "org.jboss",
                                      "org.postgresql",
                                      "org.slf4j",
                                      "org.springframework",
                                      "com.fasterxml",
                                      "com.google",
                                      "com.mysql",
                                      "com.zaxxer",
                                      "ch.qos"};
    for (size_t i = 0; i < ARRAY_LENGTH(native); i++)
        if (function->length > strlen(native[i]) &&
            !memcmp(function->name, native[i], strlen(native[i])))
            return constant("std");
    for (size_t i = 0; i < ARRAY_LENGTH(jvm); i++)
        if (is_below(function, jvm[i]))
            return constant(jvm[i]);
    return nothing();
}

struct package library_of(const struct calltree_function *function)
{
    const char *slash = strrchr(function->binary, '/');
    const char *binary = slash ? slash + 1 : function->binary;
    if (is_library_file(binary))
        return constant(binary);
    struct package library = file_library(function);
    return library.length ? library : name_library(function);
}
