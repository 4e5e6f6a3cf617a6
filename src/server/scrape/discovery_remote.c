// SPDX-License-Identifier: Apache-2.0
// Asking other services for targets: see discovery_remote.h.

#include "server/scrape/discovery_remote.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <ctype.h>
#include <netdb.h>
#include <resolv.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/idtable.h"
#include "base/memory.h"
#include "http/client/client.h"

#define TIMEOUT_MS 5000
#define SECRET_BYTES_MAX 65536
#define ANSWER_BYTES_MAX (64u << 20)
#define PODS_PER_PAGE 500
#define PAGES_MAX 200

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_word(hash ^ XXH3_64bits(text, strlen(text)));
}

uint64_t target_groups_hash(const struct target_groups *groups)
{
    uint64_t hash = hash_word(groups->count + 1);
    for (size_t i = 0; i < groups->count; i++) {
        const struct target_group *group = &groups->list[i];
        for (size_t k = 0; k < group->count; k++)
            hash = hash_text(hash, group->addresses[k]);
        for (size_t k = 0; k < group->labels.count; k++) {
            const struct label *label = &group->labels.list[k];
            hash = hash_text(hash, label->name);
            hash = hash_text(hash, label->value);
        }
        hash = hash_word(hash + i);
    }
    return hash;
}

static void add_target(struct target_groups *groups, const char *address, const char *name,
                       const char *value)
{
    if (groups->count >= REMOTE_TARGETS_MAX)
        return;
    array_reserve(groups->list, groups->capacity, groups->count + 1);
    struct target_group *group = &groups->list[groups->count++];
    *group = (struct target_group){0};
    array_reserve(group->addresses, group->capacity, 1);
    group->addresses[group->count++] = memory_strdup(address);
    labels_set(&group->labels, name, value);
}

/* ---- HTTP ---- */

static int read_secret(const char *path, struct buffer *secret, struct error *error)
{
    int r = file_read(path, SECRET_BYTES_MAX, secret, error);
    while (!r && secret->length && isspace((unsigned char)secret->data[secret->length - 1]))
        secret->length--;
    buffer_text(secret);
    return r;
}

static int get(const struct scrape_job *access, const char *url, struct http_reply *reply,
               struct error *error)
{
    _cleanup_buffer_ struct buffer secret = {0};
    _cleanup_buffer_ struct buffer header = {0};
    const char *file = access->user ? access->password_file : access->credentials_file, *line;
    int r = file ? read_secret(file, &secret, error) : 0;
    if (r < 0)
        return r;
    const char *given = access->user ? access->password : access->credentials;
    const char *text = file ? buffer_text(&secret) : given;
    struct http_client_options options = {
        .ca_file = access->ca_file,
        .certificate_file = access->certificate_file,
        .key_file = access->key_file,
        .insecure = access->insecure,
        .server_name = access->server_name,
        .user = access->user,
        .password = access->user ? text : NULL,
        .bearer = access->user || access->authorization ? NULL : text,
        .proxy = access->proxy,
        .answer_limit_bytes = ANSWER_BYTES_MAX,
        .timeout_ms = TIMEOUT_MS,
        .connect_timeout_ms = TIMEOUT_MS,
    };
    struct http_call call = {.url = url};
    struct http_client *client = NULL;
    if (access->authorization) {
        buffer_printf(&header, "Authorization: %s %s", access->authorization, text ? text : "");
        line = buffer_text(&header);
        call.headers = &line;
        call.header_count = 1;
    }
    r = http_client_new(&options, &client, error);
    if (!r)
        r = http_client_call(client, &call, reply, error);
    http_client_free(client);
    if (!r && reply->status != 200)
        r = http_reply_error(&call, reply, error);
    return r;
}

static int look_http(const struct scrape_remote *remote, struct target_groups *ret_groups,
                     struct error *error)
{
    _cleanup_http_reply_ struct http_reply reply = {0};
    _cleanup_buffer_ struct buffer name = {0};
    int r = get(&remote->access, remote->name, &reply, error);
    if (r < 0)
        return r;
    buffer_printf(&name, "%s.json", remote->name);
    return target_groups_read(buffer_text(&name), buffer_text(&reply.body), reply.body.length,
                              ret_groups, error);
}

/* ---- DNS ---- */

static int look_addresses(const struct scrape_remote *remote, int family,
                          struct target_groups *groups, struct error *error)
{
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM}, *list;
    int code = getaddrinfo(remote->name, NULL, &hints, &list);
    if (code)
        return error_set(error, -ENOENT, "Failed to look up \"%.200s\": %s.", remote->name,
                         gai_strerror(code));
    for (const struct addrinfo *at = list; at; at = at->ai_next) {
        char text[INET6_ADDRSTRLEN], address[INET6_ADDRSTRLEN + 16];
        if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST))
            continue;
        snprintf(address, sizeof(address), family == AF_INET6 ? "[%s]:%u" : "%s:%u", text,
                 remote->port);
        add_target(groups, address, "__meta_dns_name", remote->name);
    }
    freeaddrinfo(list);
    return 0;
}

static int look_services(const struct scrape_remote *remote, struct target_groups *groups,
                         struct error *error)
{
    static const size_t answer_bytes = NS_MAXMSG;
    _cleanup_free_ unsigned char *answer = memory_alloc(answer_bytes);
    ns_msg message;
    int length = res_query(remote->name, ns_c_in, ns_t_srv, answer, (int)answer_bytes);
    if (length < 0 || ns_initparse(answer, MIN(length, (int)answer_bytes), &message) < 0)
        return error_set(error, -ENOENT, "Failed to look up the SRV records of \"%.200s\".",
                         remote->name);
    for (int i = 0; i < ns_msg_count(message, ns_s_an); i++) {
        char host[NS_MAXDNAME], address[NS_MAXDNAME + 16];
        ns_rr record;
        if (ns_parserr(&message, ns_s_an, i, &record) < 0 || ns_rr_type(record) != ns_t_srv ||
            ns_rr_rdlen(record) < 7 ||
            dn_expand(ns_msg_base(message), ns_msg_end(message), ns_rr_rdata(record) + 6, host,
                      sizeof(host)) < 0)
            continue;
        snprintf(address, sizeof(address), "%s:%u", host, ns_get16(ns_rr_rdata(record) + 4));
        add_target(groups, address, "__meta_dns_name", remote->name);
    }
    return 0;
}

/* ---- Kubernetes ---- */

static int look_pods(const struct scrape_remote *remote, struct target_groups *groups,
                     struct error *error)
{
    char *next = memory_strdup("");
    int r = 0;
    for (size_t page = 0; !r && page < PAGES_MAX; page++) {
        _cleanup_http_reply_ struct http_reply reply = {0};
        _cleanup_buffer_ struct buffer url = {0};
        buffer_printf(&url, "%s?limit=%d", remote->name, PODS_PER_PAGE);
        if (*next)
            buffer_add_text(&url, "&continue=");
        for (const char *c = next; *c; c++)
            buffer_printf(&url, isalnum((unsigned char)*c) ? "%c" : "%%%02X", (unsigned char)*c);
        r = get(&remote->access, buffer_text(&url), &reply, error);
        free(next);
        next = NULL;
        if (!r)
            r = remote_read_pods(buffer_text(&reply.body), reply.body.length, groups, &next, error);
        if (r || !*next)
            break;
    }
    free(next);
    return r;
}

int remote_look(const struct scrape_remote *remote, struct target_groups *ret_groups,
                struct error *error)
{
    struct target_groups groups = {0};
    int r = -EINVAL;
    switch (remote->kind) {
    case REMOTE_HTTP:
        r = look_http(remote, &groups, error);
        break;
    case REMOTE_DNS_A:
        r = look_addresses(remote, AF_INET, &groups, error);
        break;
    case REMOTE_DNS_AAAA:
        r = look_addresses(remote, AF_INET6, &groups, error);
        break;
    case REMOTE_DNS_SRV:
        r = look_services(remote, &groups, error);
        break;
    case REMOTE_PODS:
        r = look_pods(remote, &groups, error);
        break;
    }
    if (r < 0)
        target_groups_release(&groups);
    else
        *ret_groups = groups;
    return r;
}
