// SPDX-License-Identifier: Apache-2.0
// Many requests at once: see client_multi.h.

#include "http/client/client_multi.h"

#include "base/memory.h"
#include "http/client/client_transfer.h"

/* A request under way. The list is doubly linked: any of them may end first. */
struct pending {
    struct pending *next, **link;
    struct http_transfer transfer;
    struct http_call call;
    char *url;
    char **headers;
    void *request;
};

struct http_multi {
    CURLM *curl;
    http_multi_done *done;
    void *context;
    atomic_size_t *budget;
    struct pending *list;
    size_t active;
};

int http_multi_new(const struct http_multi_options *options, struct http_multi **ret_multi,
                   struct error *error)
{
    struct http_multi *multi = memory_zalloc(1, sizeof(*multi));
    multi->done = options->done;
    multi->context = options->context;
    multi->budget = options->budget;
    multi->curl = curl_multi_init();
    if (!multi->curl) {
        free(multi);
        return error_set(error, -ENOMEM, "Failed to set up libcurl.");
    }
    curl_multi_setopt(multi->curl, CURLMOPT_MAXCONNECTS,
                      (long)(options->connections ? options->connections : 256));
    *ret_multi = multi;
    return 0;
}

static void pending_free(struct http_multi *multi, struct pending *pending)
{
    if (pending->link) {
        curl_multi_remove_handle(multi->curl, pending->transfer.easy);
        *pending->link = pending->next;
        if (pending->next)
            pending->next->link = pending->link;
        multi->active--;
    }
    http_transfer_release(&pending->transfer);
    for (size_t i = 0; i < pending->call.header_count; i++)
        free(pending->headers[i]);
    free(pending->headers);
    free(pending->url);
    free(pending);
}

void http_multi_free(struct http_multi *multi)
{
    if (!multi)
        return;
    while (multi->list)
        pending_free(multi, multi->list);
    curl_multi_cleanup(multi->curl);
    free(multi);
}

int http_multi_start(struct http_multi *multi, const struct http_client_options *options,
                     const struct http_call *call, void *request, struct error *error)
{
    struct pending *pending = memory_zalloc(1, sizeof(*pending));
    pending->call = *call;
    pending->request = request;
    pending->call.url = pending->url = memory_strdup(call->url);
    pending->headers = memory_zalloc(call->header_count + 1, sizeof(char *));
    for (size_t i = 0; i < call->header_count; i++)
        pending->headers[i] = memory_strdup(call->headers[i]);
    pending->call.headers = (const char *const *)pending->headers;
    int r = http_transfer_init(&pending->transfer, options, error);
    pending->transfer.budget = multi->budget;
    if (!r)
        r = http_transfer_begin(&pending->transfer, &pending->call, error);
    if (!r) {
        curl_easy_setopt(pending->transfer.easy, CURLOPT_PRIVATE, pending);
        if (curl_multi_add_handle(multi->curl, pending->transfer.easy) != CURLM_OK)
            r = error_set(error, -ENOMEM, "libcurl rejected the request.");
    }
    if (r < 0) {
        pending_free(multi, pending);
        return r;
    }
    pending->link = &multi->list;
    pending->next = multi->list;
    if (multi->list)
        multi->list->link = &pending->next;
    multi->list = pending;
    multi->active++;
    return 0;
}

static void finish(struct http_multi *multi, struct pending *pending, CURLcode code)
{
    struct http_reply reply = {0};
    struct error error = {0};
    void *request = pending->request;
    int r = http_transfer_end(&pending->transfer, code, &reply, &error);
    pending_free(multi, pending);
    multi->done(multi->context, request, r, &reply, &error);
}

void http_multi_run(struct http_multi *multi, unsigned wait_ms)
{
    int running, left;
    curl_multi_perform(multi->curl, &running);
    bool any = false;
    for (CURLMsg *message; (message = curl_multi_info_read(multi->curl, &left));) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct pending *pending = NULL;
        CURLcode code = message->data.result; /* the message dies with its handle */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&pending);
        finish(multi, pending, code);
        any = true;
    }
    if (!any && wait_ms)
        curl_multi_poll(multi->curl, NULL, 0, (int)wait_ms, NULL);
}

void http_multi_cancel(struct http_multi *multi, const void *request)
{
    for (struct pending *pending = multi->list; pending; pending = pending->next)
        if (pending->request == request) {
            pending_free(multi, pending);
            return;
        }
}

size_t http_multi_active(const struct http_multi *multi)
{
    return multi->active;
}

void http_multi_wake(struct http_multi *multi)
{
    curl_multi_wakeup(multi->curl);
}
