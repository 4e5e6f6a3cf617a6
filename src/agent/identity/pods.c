// SPDX-License-Identifier: Apache-2.0
// Names of pods, kept fresh: see pods.h.

#include "agent/identity/pods.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/client/client.h"

#define REFRESH_NS (30 * 1000000000ll)
#define ANSWER_BYTES_MAX (32u << 20)
#define TOKEN_BYTES_MAX 65536

enum { FROM_KUBELET, FROM_API_SERVER, FROM_READ_ONLY, SOURCES };

struct pods {
    struct http_client *client;
    char *urls[SOURCES]; /* NULL: not to be asked */
    char *token_file;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t changed;
    bool stop;
    struct pod_list pods;
};

/* The token changes while the agent runs: it is read each time. Plain HTTP never gets it. */
static int add_token(const struct pods *pods, const char *url, struct buffer *header,
                     struct http_call *call, struct error *error)
{
    static const char *list[1];
    _cleanup_buffer_ struct buffer token = {0};
    if (!pods->token_file || strncmp(url, "https://", 8) != 0)
        return 0;
    int r = file_read(pods->token_file, TOKEN_BYTES_MAX, &token, error);
    if (r < 0)
        return r;
    while (token.length && isspace((unsigned char)token.data[token.length - 1]))
        token.length--;
    buffer_printf(header, "Authorization: Bearer %.*s", (int)token.length, token.data);
    buffer_text(header);
    list[0] = header->data;
    call->headers = list;
    call->header_count = 1;
    return 0;
}

static int ask(struct pods *pods, const char *url, struct pod_list *fresh, struct error *error)
{
    struct http_call call = {.url = url};
    _cleanup_http_reply_ struct http_reply reply = {0};
    _cleanup_buffer_ struct buffer header = {0};
    int r = add_token(pods, url, &header, &call, error);
    if (!r)
        r = http_client_call(pods->client, &call, &reply, error);
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, error);
    if (!r)
        r = pod_list_read(fresh, reply.body.data, reply.body.length, error);
    if (r < 0)
        pod_list_release(fresh);
    return r;
}

/* The first source that answers counts; the error is that of the first. */
static int refresh(struct pods *pods, struct error *error)
{
    struct pod_list fresh = {0};
    int r = -ENOENT, first = 0;
    for (size_t i = 0; i < SOURCES && r < 0 && r != -ECANCELED; i++) {
        struct error other = {0};
        if (!pods->urls[i])
            continue;
        r = ask(pods, pods->urls[i], &fresh, first ? &other : error);
        first = first ? first : r;
    }
    if (r < 0)
        return r;
    pthread_mutex_lock(&pods->lock);
    struct pod_list stale = pods->pods;
    pods->pods = fresh;
    pthread_mutex_unlock(&pods->lock);
    pod_list_release(&stale);
    return 0;
}

static bool rest(struct pods *pods)
{
    int64_t until = monotonic_ns() + REFRESH_NS;
    pthread_mutex_lock(&pods->lock);
    while (!pods->stop && monotonic_ns() < until)
        condition_wait_until(&pods->changed, &pods->lock, until);
    bool stop = pods->stop;
    pthread_mutex_unlock(&pods->lock);
    return !stop;
}

static void *run(void *argument)
{
    struct pods *pods = argument;
    bool failed = false;
    pthread_setname_np(pthread_self(), "pods");
    do {
        struct error error = {0};
        bool fails = refresh(pods, &error) < 0;
        if (fails && !failed) /* once, not every half minute */
            log_warning("Failed to get pod names: %s", error.text);
        failed = fails;
    } while (rest(pods));
    return NULL;
}

static char *join(const char *url, const char *path, const char *node)
{
    struct buffer text = {0};
    size_t length = url ? strlen(url) : 0;
    if (!url)
        return NULL;
    while (length && url[length - 1] == '/')
        length--;
    buffer_printf(&text, "%.*s%s%s", (int)length, url, path, node);
    buffer_text(&text);
    return text.data;
}

int pods_start(const struct pods_options *options, struct pods **ret_pods, struct error *error)
{
    struct pods *pods = memory_zalloc(1, sizeof(*pods));
    char host[256] = "";
    pthread_mutex_init(&pods->lock, NULL);
    pthread_cond_init(&pods->changed, NULL);
    gethostname(host, sizeof(host) - 1);
    pods->urls[FROM_KUBELET] = join(options->kubelet, "/pods", "");
    pods->urls[FROM_API_SERVER] =
        join(options->api_server, "/api/v1/pods?fieldSelector=spec.nodeName%3D",
             options->node ? options->node : host);
    pods->urls[FROM_READ_ONLY] = join(options->read_only, "/pods", "");
    pods->token_file = options->token_file ? memory_strdup(options->token_file) : NULL;
    int r = http_client_new(&(struct http_client_options){.answer_limit_bytes = ANSWER_BYTES_MAX,
                                                          .timeout_ms = 10000,
                                                          .ca_file = options->ca_file,
                                                          .insecure = options->insecure},
                            &pods->client, error);
    if (!r && (r = -pthread_create(&pods->thread, NULL, run, pods)))
        r = error_set_errno(error, r, "Failed to start a thread");
    pods->started = !r;
    if (r < 0) {
        pods_stop(pods);
        return r;
    }
    *ret_pods = pods;
    return 0;
}

void pods_stop(struct pods *pods)
{
    if (!pods)
        return;
    if (pods->started) {
        pthread_mutex_lock(&pods->lock);
        pods->stop = true;
        pthread_cond_signal(&pods->changed);
        pthread_mutex_unlock(&pods->lock);
        http_client_cancel(pods->client);
        pthread_join(pods->thread, NULL);
    }
    http_client_free(pods->client);
    pod_list_release(&pods->pods);
    pthread_mutex_destroy(&pods->lock);
    pthread_cond_destroy(&pods->changed);
    for (size_t i = 0; i < SOURCES; i++)
        free(pods->urls[i]);
    free(pods->token_file);
    free(pods);
}

size_t pods_count(struct pods *pods)
{
    if (!pods)
        return 0;
    pthread_mutex_lock(&pods->lock);
    size_t count = pods->pods.count;
    pthread_mutex_unlock(&pods->lock);
    return count;
}

static void set_default(struct labels *labels, const char *name, const char *value)
{
    if (*value && !labels_get(labels, name))
        labels_set(labels, name, value);
}

bool pods_label(struct pods *pods, const char *pod_uid, const char *container_id,
                struct labels *labels)
{
    const struct pod_container *found = NULL;
    pthread_mutex_lock(&pods->lock);
    for (size_t i = 0; i < pods->pods.count && !found; i++) {
        const struct pod_container *container = &pods->pods.list[i];
        if (!strcmp(container->container_id, container_id) &&
            (!*pod_uid || !strcmp(container->pod_uid, pod_uid)))
            found = container;
    }
    if (found) {
        set_default(labels, "pod", found->pod);
        set_default(labels, "namespace", found->namespace);
        set_default(labels, "container", found->container);
        set_default(labels, LABEL_SERVICE_NAME,
                    *found->service ? found->service : found->container);
        set_default(labels, "version", found->version);
        set_default(labels, "node", found->node);
        set_default(labels, "workload", found->workload);
        set_default(labels, "workload_kind", found->workload_kind);
        for (size_t i = 0; i < found->label_count; i++) {
            const struct pod_label *label = &pods->pods.labels[found->first_label + i];
            labels_set(labels, label->name, label->value);
        }
    }
    pthread_mutex_unlock(&pods->lock);
    return found;
}
