// SPDX-License-Identifier: Apache-2.0
// The kubelet's list of pods: see pods.h.

#include "agent/identity/pods.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/client/client.h"
#include "io/json.h"

#define REFRESH_NS (30 * 1000000000ll)
#define ANSWER_BYTES_MAX (32u << 20)

/* Names of pod labels for the service, the best first. */
static const char *const service_labels[] = {"app.kubernetes.io/name", "app", "k8s-app",
                                             "app.kubernetes.io/component"};
static const char version_label[] = "app.kubernetes.io/version";

size_t pod_service_rank(const char *key, size_t length)
{
    for (size_t i = 0; i < ARRAY_LENGTH(service_labels); i++)
        if (strlen(service_labels[i]) == length && !memcmp(service_labels[i], key, length))
            return i;
    return SIZE_MAX;
}

bool pod_is_version(const char *key, size_t length)
{
    return strlen(version_label) == length && !memcmp(version_label, key, length);
}

/* ---- the list ---- */

void pod_list_release(struct pod_list *pods)
{
    free(pods->list);
    arena_release(&pods->arena);
    *pods = (struct pod_list){0};
}

static const char *keep(struct pod_list *pods, const struct json_string *text)
{
    return arena_strndup(&pods->arena, text->data, strnlen(text->data, MIN(text->length, 1024)));
}

static int read_text(struct json *json, struct pod_list *pods, const char **ret_text)
{
    struct json_string text;
    int r = json_kind(json);
    if (r != JSON_STRING)
        return MIN(r, 0);
    if ((r = json_string(json, &text)) == 0)
        *ret_text = keep(pods, &text);
    return r;
}

static int read_labels(struct json *json, struct pod_list *pods, struct pod_container *pod)
{
    struct json_string key;
    size_t best = SIZE_MAX;
    int r = json_kind(json);
    if (r != JSON_OBJECT)
        return MIN(r, 0);
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0) {
        size_t rank = pod_service_rank(key.data, key.length);
        if (pod_is_version(key.data, key.length)) {
            read_text(json, pods, &pod->version);
        } else if (rank < best) {
            read_text(json, pods, &pod->service);
            best = rank;
        }
    }
    return r;
}

static int read_metadata(struct json *json, struct pod_list *pods, struct pod_container *pod)
{
    struct json_string key;
    int r;
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "uid"))
            read_text(json, pods, &pod->pod_uid);
        else if (json_is(&key, "name"))
            read_text(json, pods, &pod->pod);
        else if (json_is(&key, "namespace"))
            read_text(json, pods, &pod->namespace);
        else if (json_is(&key, "labels"))
            read_labels(json, pods, pod);
    }
    return r;
}

/* "containerd://0123...": what follows the slashes. */
static const char *id_of(const char *text)
{
    const char *at = strstr(text, "://");
    return at ? at + 3 : text;
}

static int read_containers(struct json *json, struct pod_list *pods)
{
    struct json_string key;
    int r = json_kind(json);
    if (r != JSON_ARRAY)
        return MIN(r, 0);
    json_array(json);
    while ((r = json_next_element(json)) > 0) {
        struct pod_container found = {.container_id = "", .container = ""};
        json_object(json);
        while ((r = json_next_key(json, &key)) > 0) {
            if (json_is(&key, "name"))
                read_text(json, pods, &found.container);
            else if (json_is(&key, "containerID"))
                read_text(json, pods, &found.container_id);
        }
        found.container_id = id_of(found.container_id);
        if (r == 0 && *found.container_id && pods->count < POD_CONTAINERS_MAX) {
            array_reserve(pods->list, pods->capacity, pods->count + 1);
            pods->list[pods->count++] = found;
        }
    }
    return r;
}

static int read_pod(struct json *json, struct pod_list *pods)
{
    struct pod_container pod = {
        .pod_uid = "", .pod = "", .namespace = "", .service = "", .version = ""};
    struct json_string key, inner;
    size_t first = pods->count;
    int r;
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "metadata")) {
            read_metadata(json, pods, &pod);
        } else if (json_is(&key, "status")) {
            json_object(json);
            while ((r = json_next_key(json, &inner)) > 0)
                if (json_is(&inner, "containerStatuses") ||
                    json_is(&inner, "initContainerStatuses"))
                    read_containers(json, pods);
        }
    }
    /* Fields that the containers share may come after them. */
    for (size_t i = first; i < pods->count; i++) {
        struct pod_container *container = &pods->list[i];
        pod.container = container->container;
        pod.container_id = container->container_id;
        *container = pod;
    }
    return r;
}

int pod_list_read(struct pod_list *pods, const char *json_text, size_t length, struct error *error)
{
    struct source source;
    struct json_string key;
    int r =
        source_open_memory(&source, "the list of pods", json_text, length, ANSWER_BYTES_MAX, error);
    if (r < 0)
        return r;
    struct json json;
    json_init(&json, &source, error);
    json_object(&json);
    while ((r = json_next_key(&json, &key)) > 0)
        if (json_is(&key, "items") && json_kind(&json) == JSON_ARRAY) {
            json_array(&json);
            while ((r = json_next_element(&json)) > 0)
                read_pod(&json, pods);
        }
    if (r >= 0)
        r = json_end(&json);
    json_release(&json);
    source_release(&source);
    return MIN(r, 0);
}

/* ---- keeping it fresh ---- */

struct pods {
    struct http_client *client;
    char *url;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t changed;
    bool stop;
    struct pod_list pods;
};

static int refresh(struct pods *pods, struct error *error)
{
    struct http_call call = {.url = pods->url};
    _cleanup_http_reply_ struct http_reply reply = {0};
    struct pod_list fresh = {0};
    int r = http_client_call(pods->client, &call, &reply, error);
    if (!r && reply.status != 200)
        r = http_reply_error(&call, &reply, error);
    if (!r)
        r = pod_list_read(&fresh, reply.body.data, reply.body.length, error);
    if (r < 0) {
        pod_list_release(&fresh);
        return r;
    }
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

int pods_start(const char *url, struct pods **ret_pods, struct error *error)
{
    struct pods *pods = memory_zalloc(1, sizeof(*pods));
    struct buffer text = {0};
    pthread_mutex_init(&pods->lock, NULL);
    pthread_cond_init(&pods->changed, NULL);
    buffer_printf(&text, "%s/pods", url);
    buffer_text(&text);
    pods->url = text.data;
    int r = http_client_new(
        &(struct http_client_options){.answer_limit_bytes = ANSWER_BYTES_MAX, .timeout_ms = 10000},
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
    free(pods->url);
    free(pods);
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
    }
    pthread_mutex_unlock(&pods->lock);
    return found;
}
