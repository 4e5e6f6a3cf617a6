// SPDX-License-Identifier: Apache-2.0
// Reads scrape_configs: see scrape_config.h.

#include "server/scrape/scrape_config.h"

#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "label/rules/rules.h"

#define SECOND_NS 1000000000ll
#define MINUTE_NS (60 * SECOND_NS)
#define DAY_NS (86400 * SECOND_NS)
#define GODELTAPROF "godeltaprof_"

struct reader {
    struct scrape_jobs *jobs;
    struct problems *problems;
    int64_t interval_ns, timeout_ns;
};

/* The profiles to fetch by default. `delta` adds ?seconds=N. */
static const struct {
    const char *name, *path;
    bool enabled, delta, cumulative;
} known[] = {
    {"process_cpu", "/debug/pprof/profile", true, true, false},
    {"memory", "/debug/pprof/allocs", true, false, true},
    {"goroutine", "/debug/pprof/goroutine", true, false, false},
    {"mutex", "/debug/pprof/mutex", true, false, true},
    {"block", "/debug/pprof/block", true, false, true},
    {"fgprof", "/debug/fgprof", false, true, false},
    {"godeltaprof_memory", "/debug/pprof/delta_heap", false, false, false},
    {"godeltaprof_mutex", "/debug/pprof/delta_mutex", false, false, false},
    {"godeltaprof_block", "/debug/pprof/delta_block", false, false, false},
};

static const char *copy(struct scrape_jobs *jobs, const char *text)
{
    return text ? arena_strndup(&jobs->arena, text, strlen(text)) : NULL;
}

static void read_text(struct reader *reader, struct settings *settings, const char *key,
                      const char **ret)
{
    const char *text;
    if (settings_string(settings, key, &text))
        *ret = copy(reader->jobs, text);
}

static const char **copy_texts(struct scrape_jobs *jobs, const struct yaml_node *list,
                               size_t *ret_count)
{
    size_t count = list ? list->kind == YAML_SCALAR ? 1 : list->count : 0;
    const char **texts = arena_alloc(&jobs->arena, (count + 1) * sizeof(*texts));
    for (size_t i = 0; i < count; i++)
        texts[i] = copy(jobs, list->kind == YAML_SCALAR ? list->text : list->values[i]->text);
    *ret_count = count;
    return texts;
}

/* ---- profiles ---- */

static int64_t default_seconds(const struct scrape_job *job)
{
    return MAX((job->interval_ns - SECOND_NS) / SECOND_NS, 1ll);
}

static void read_profile(struct reader *reader, struct scrape_job *job, const char *name,
                         const struct yaml_node *node)
{
    struct scrape_profile profile = {0};
    bool enabled = true, delta = false;
    uint64_t seconds = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (!strcmp(known[i].name, name)) {
            profile.path = known[i].path;
            profile.cumulative = known[i].cumulative;
            enabled = known[i].enabled || (node && node->kind == YAML_MAP);
            delta = known[i].delta;
        }
    struct settings section;
    settings_open(&section, reader->problems, node, "A profile of pprof_config");
    settings_bool(&section, "enabled", &enabled);
    read_text(reader, &section, "path", &profile.path);
    settings_bool(&section, "delta", &delta);
    if (settings_u64(&section, "seconds", 1, 3600, &seconds))
        delta = true;
    settings_close(&section);
    if (!enabled)
        return;
    if (!profile.path || *profile.path != '/') {
        problems_add(reader->problems, node,
                     "The profile \"%.60s\" requires a path that starts with /", name);
        return;
    }
    if (delta) {
        profile.seconds = seconds ? (int64_t)seconds : default_seconds(job);
        profile.cumulative = false; /* what is measured for a time has a beginning */
    }
    if (job->profile_count == SCRAPE_PROFILES_MAX) {
        problems_add(reader->problems, node, "The limit is %d profiles", SCRAPE_PROFILES_MAX);
        return;
    }
    /* Differences that the target computes have the name of the values they are differences of. */
    size_t prefix = !strncmp(name, GODELTAPROF, strlen(GODELTAPROF)) ? strlen(GODELTAPROF) : 0;
    profile.name = copy(reader->jobs, name + prefix);
    job->profiles[job->profile_count++] = profile;
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (!strcmp(known[i].name, name))
            return true;
    return false;
}

static void read_profiles(struct reader *reader, struct scrape_job *job, struct settings *settings)
{
    struct settings section;
    settings_open(&section, reader->problems, settings_map(settings, "profiling_config"),
                  "profiling_config");
    read_text(reader, &section, "path_prefix", &job->path_prefix);
    const struct yaml_node *map = settings_map(&section, "pprof_config");
    settings_close(&section);
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        read_profile(reader, job, known[i].name, map ? yaml_node_get(map, known[i].name) : NULL);
    for (size_t i = 0; map && i < map->count; i++)
        if (!is_known(map->keys[i]->text))
            read_profile(reader, job, map->keys[i]->text, map->values[i]);
    if (!job->profile_count)
        problems_add(reader->problems, map, "The job \"%.60s\" has no enabled profile", job->name);
}

/* ---- how ---- */

static void read_basic_auth(struct reader *reader, struct scrape_job *job,
                            struct settings *settings)
{
    struct settings section;
    const struct yaml_node *map = settings_map(settings, "basic_auth");
    settings_open(&section, reader->problems, map, "basic_auth");
    read_text(reader, &section, "username", &job->user);
    read_text(reader, &section, "password", &job->password);
    read_text(reader, &section, "password_file", &job->password_file);
    settings_close(&section);
    if (map && !job->user)
        problems_add(reader->problems, map, "basic_auth requires a username");
    if (job->password && job->password_file)
        problems_add(reader->problems, map,
                     "basic_auth accepts password or password_file, not both");
}

static void read_authorization(struct reader *reader, struct scrape_job *job,
                               struct settings *settings)
{
    struct settings section;
    const char *type = "Bearer";
    const struct yaml_node *map = settings_map(settings, "authorization");
    settings_open(&section, reader->problems, map, "authorization");
    settings_string(&section, "type", &type);
    read_text(reader, &section, "credentials", &job->credentials);
    read_text(reader, &section, "credentials_file", &job->credentials_file);
    settings_close(&section);
    if (map && !job->credentials == !job->credentials_file)
        problems_add(reader->problems, map,
                     "authorization requires either credentials or credentials_file");
    if (strcasecmp(type, "Bearer"))
        job->authorization = copy(reader->jobs, type);
    const char *bearer = NULL, *bearer_file = NULL;
    read_text(reader, settings, "bearer_token", &bearer);
    read_text(reader, settings, "bearer_token_file", &bearer_file);
    if ((bearer || bearer_file) &&
        (job->credentials || job->credentials_file || (bearer && bearer_file)))
        problems_add(reader->problems, settings->map,
                     "Only one of authorization, bearer_token and bearer_token_file can be used");
    job->credentials = bearer ? bearer : job->credentials;
    job->credentials_file = bearer_file ? bearer_file : job->credentials_file;
    if (job->user && (job->credentials || job->credentials_file))
        problems_add(reader->problems, settings->map,
                     "basic_auth and bearer tokens can't be used together");
}

static void read_tls(struct reader *reader, struct scrape_job *job, struct settings *settings)
{
    struct settings section;
    const struct yaml_node *map = settings_map(settings, "tls_config");
    settings_open(&section, reader->problems, map, "tls_config");
    read_text(reader, &section, "ca_file", &job->ca_file);
    read_text(reader, &section, "cert_file", &job->certificate_file);
    read_text(reader, &section, "key_file", &job->key_file);
    read_text(reader, &section, "server_name", &job->server_name);
    settings_bool(&section, "insecure_skip_verify", &job->insecure);
    settings_close(&section);
    if (!job->certificate_file != !job->key_file)
        problems_add(reader->problems, map, "tls_config requires both cert_file and key_file");
}

static void read_params(struct reader *reader, struct scrape_job *job, struct settings *settings)
{
    const struct yaml_node *map = settings_map(settings, "params");
    if (!map)
        return;
    job->params = arena_alloc(&reader->jobs->arena, (map->count + 1) * sizeof(*job->params));
    for (size_t i = 0; i < map->count; i++) {
        const struct yaml_node *value = map->values[i];
        bool fits = value->kind == YAML_SCALAR || value->kind == YAML_LIST;
        for (size_t k = 0; value->kind == YAML_LIST && k < value->count; k++)
            fits &= value->values[k]->kind == YAML_SCALAR;
        if (!fits) {
            problems_add(reader->problems, value,
                         "A parameter's value must be a string or a list of strings");
            continue;
        }
        struct scrape_param *param = &job->params[job->param_count++];
        param->name = copy(reader->jobs, map->keys[i]->text);
        param->values = copy_texts(reader->jobs, value, &param->count);
    }
}

/* ---- where ---- */

static void read_files(struct reader *reader, struct scrape_job *job, struct settings *settings)
{
    const struct yaml_node *list = settings_list(settings, "file_sd_configs");
    size_t capacity = 0;
    const char **files = NULL;
    for (size_t i = 0; list && i < list->count; i++) {
        struct settings section;
        settings_open(&section, reader->problems, list->values[i], "file_sd_configs");
        const struct yaml_node *names = settings_strings(&section, "files");
        settings_duration(&section, "refresh_interval", SECOND_NS / 10, DAY_NS, &job->refresh_ns);
        settings_close(&section);
        if (!names || !names->count)
            problems_add(reader->problems, list->values[i], "file_sd_configs requires files");
        for (size_t k = 0; names && k < names->count; k++) {
            array_reserve(files, capacity, job->file_count + 1);
            files[job->file_count++] = copy(reader->jobs, names->values[k]->text);
        }
    }
    size_t bytes = job->file_count * sizeof(*files);
    job->files = arena_alloc(&reader->jobs->arena, bytes + sizeof(*files));
    if (bytes)
        memcpy(job->files, files, bytes);
    free(files);
}

static struct scrape_remote *add_remote(struct reader *reader, struct scrape_job *job,
                                        const struct yaml_node *node, enum remote_kind kind,
                                        const char *name)
{
    if (job->remote_count == SCRAPE_REMOTES_MAX) {
        problems_add(reader->problems, node, "A job can have %d sources of targets",
                     SCRAPE_REMOTES_MAX);
        return NULL;
    }
    if (!job->remotes)
        job->remotes =
            arena_alloc(&reader->jobs->arena, SCRAPE_REMOTES_MAX * sizeof(*job->remotes));
    struct scrape_remote *remote = &job->remotes[job->remote_count++];
    *remote = (struct scrape_remote){.kind = kind, .name = name};
    return remote;
}

/* The secrets and certificates of one source. */
static void read_access(struct reader *reader, struct scrape_job *access, struct settings *section)
{
    read_text(reader, section, "proxy_url", &access->proxy);
    read_basic_auth(reader, access, section);
    read_authorization(reader, access, section);
    read_tls(reader, access, section);
}

static bool is_url(const char *text)
{
    return text && (!strncmp(text, "http://", 7) || !strncmp(text, "https://", 8));
}

static void read_http(struct reader *reader, struct scrape_job *job, struct settings *settings)
{
    const struct yaml_node *list = settings_list(settings, "http_sd_configs");
    for (size_t i = 0; list && i < list->count; i++) {
        struct settings section;
        struct scrape_job access = {0};
        const char *url = NULL;
        int64_t refresh_ns = MINUTE_NS;
        settings_open(&section, reader->problems, list->values[i], "http_sd_configs");
        read_text(reader, &section, "url", &url);
        settings_duration(&section, "refresh_interval", SECOND_NS, DAY_NS, &refresh_ns);
        read_access(reader, &access, &section);
        settings_close(&section);
        if (!is_url(url)) {
            problems_add(reader->problems, list->values[i],
                         "http_sd_configs requires a url: http:// or https://");
            continue;
        }
        struct scrape_remote *remote = add_remote(reader, job, list->values[i], REMOTE_HTTP, url);
        if (!remote)
            return;
        remote->access = access;
        remote->refresh_ns = refresh_ns;
    }
}

static void read_dns(struct reader *reader, struct scrape_job *job, struct settings *settings)
{
    static const char *const types[] = {"A", "AAAA", "SRV"};
    const struct yaml_node *list = settings_list(settings, "dns_sd_configs");
    for (size_t i = 0; list && i < list->count; i++) {
        struct settings section;
        unsigned type = 2;
        uint64_t port = 0;
        int64_t refresh_ns = MINUTE_NS / 2;
        settings_open(&section, reader->problems, list->values[i], "dns_sd_configs");
        const struct yaml_node *names = settings_strings(&section, "names");
        settings_choice(&section, "type", types, ARRAY_LENGTH(types), &type);
        settings_u64(&section, "port", 1, 65535, &port);
        settings_duration(&section, "refresh_interval", SECOND_NS, DAY_NS, &refresh_ns);
        settings_close(&section);
        if (!names || !names->count)
            problems_add(reader->problems, list->values[i], "dns_sd_configs requires names");
        if (type < 2 && !port)
            problems_add(reader->problems, list->values[i],
                         "dns_sd_configs of type %s requires a port", types[type]);
        for (size_t k = 0; names && k < names->count; k++) {
            const char *name = copy(reader->jobs, names->values[k]->text);
            struct scrape_remote *remote =
                add_remote(reader, job, list->values[i], REMOTE_DNS_A + type, name);
            if (!remote)
                return;
            remote->port = (unsigned)port;
            remote->refresh_ns = refresh_ns;
        }
    }
}

#define IN_CLUSTER "/var/run/secrets/kubernetes.io/serviceaccount/"

static void read_kubernetes(struct reader *reader, struct scrape_job *job,
                            struct settings *settings)
{
    static const char *const roles[] = {"pod"};
    const struct yaml_node *list = settings_list(settings, "kubernetes_sd_configs");
    for (size_t i = 0; list && i < list->count; i++) {
        struct settings section, inner;
        struct scrape_job access = {0};
        const char *server = NULL;
        unsigned role = 0;
        int64_t refresh_ns = MINUTE_NS / 2;
        settings_open(&section, reader->problems, list->values[i], "kubernetes_sd_configs");
        settings_choice(&section, "role", roles, ARRAY_LENGTH(roles), &role);
        read_text(reader, &section, "api_server", &server);
        settings_duration(&section, "refresh_interval", SECOND_NS, DAY_NS, &refresh_ns);
        const struct yaml_node *map = settings_map(&section, "namespaces");
        settings_open(&inner, reader->problems, map, "namespaces");
        const struct yaml_node *names = settings_strings(&inner, "names");
        settings_close(&inner);
        read_access(reader, &access, &section);
        settings_close(&section);
        if (!server) {
            server = "https://kubernetes.default.svc";
            access.credentials_file = IN_CLUSTER "token";
            access.ca_file = IN_CLUSTER "ca.crt";
        } else if (!is_url(server)) {
            problems_add(reader->problems, list->values[i],
                         "api_server must be a URL: http:// or https://");
            continue;
        }
        for (size_t k = 0; k < MAX(names ? names->count : 0, 1u); k++) {
            struct buffer url = {0};
            buffer_printf(&url, "%s/api/v1%s%s/pods", server,
                          names && names->count ? "/namespaces/" : "",
                          names && names->count ? names->values[k]->text : "");
            const char *name = copy(reader->jobs, buffer_text(&url));
            buffer_release(&url);
            struct scrape_remote *remote =
                add_remote(reader, job, list->values[i], REMOTE_PODS, name);
            if (!remote)
                return;
            remote->access = access;
            remote->refresh_ns = refresh_ns;
        }
    }
}

static void read_static(struct reader *reader, struct scrape_job *job, struct settings *settings)
{
    const struct yaml_node *list = settings_list(settings, "static_configs");
    struct error error = {0};
    if (list && target_groups_read_yaml(list, &job->groups, &error) < 0)
        problems_add_error(reader->problems, list, &error);
}

/* Relabelling may write an address; all others have to be ones that can be scraped. */
static void check_static(struct reader *reader, const struct scrape_job *job,
                         const struct yaml_node *node)
{
    for (size_t i = 0; i < job->groups.count; i++)
        for (size_t k = 0; k < job->groups.list[i].count; k++) {
            struct error error = {0};
            struct discovered target;
            int r = discovery_target(job, &job->groups.list[i], job->groups.list[i].addresses[k],
                                     &target, &error);
            if (r < 0)
                problems_add_error(reader->problems, node, &error);
            else if (r > 0)
                discovered_release(&target);
        }
}

static void read_job(struct reader *reader, const struct yaml_node *node)
{
    static const char *const schemes[] = {"http", "https"};
    struct scrape_jobs *jobs = reader->jobs;
    array_reserve(jobs->list, jobs->capacity, jobs->count + 1);
    struct scrape_job *job = &jobs->list[jobs->count++];
    *job = (struct scrape_job){.tenant = "anonymous",
                               .path_prefix = "",
                               .interval_ns = reader->interval_ns,
                               .timeout_ns = reader->timeout_ns,
                               .refresh_ns = 5 * SECOND_NS,
                               .redirects = true};
    struct settings section;
    unsigned scheme = 0;
    settings_open(&section, reader->problems, node, "A job of scrape_configs");
    read_text(reader, &section, "job_name", &job->name);
    read_text(reader, &section, "tenant", &job->tenant);
    settings_duration(&section, "scrape_interval", SECOND_NS, DAY_NS, &job->interval_ns);
    settings_duration(&section, "scrape_timeout", SECOND_NS / 10, DAY_NS, &job->timeout_ns);
    settings_choice(&section, "scheme", schemes, ARRAY_LENGTH(schemes), &scheme);
    job->scheme = schemes[scheme];
    settings_bool(&section, "follow_redirects", &job->redirects);
    read_text(reader, &section, "proxy_url", &job->proxy);
    if (!job->name || !*job->name) {
        problems_add(reader->problems, node, "A job of scrape_configs requires a job_name");
        job->name = "";
    }
    for (size_t i = 0; i + 1 < jobs->count; i++)
        if (!strcmp(jobs->list[i].name, job->name) && *job->name)
            problems_add(reader->problems, node, "Two jobs have the name \"%.60s\"", job->name);
    read_basic_auth(reader, job, &section);
    read_authorization(reader, job, &section);
    read_tls(reader, job, &section);
    read_params(reader, job, &section);
    read_profiles(reader, job, &section);
    relabel_read(&section, "relabel_configs", &job->relabel);
    read_static(reader, job, &section);
    read_files(reader, job, &section);
    read_http(reader, job, &section);
    read_dns(reader, job, &section);
    read_kubernetes(reader, job, &section);
    settings_close(&section);
    check_static(reader, job, node);
}

struct scrape_jobs *scrape_jobs_read(struct settings *settings)
{
    struct scrape_jobs *jobs = memory_zalloc(1, sizeof(*jobs));
    struct reader reader = {.jobs = jobs,
                            .problems = settings->problems,
                            .interval_ns = SCRAPE_DEFAULT_INTERVAL_NS,
                            .timeout_ns = SCRAPE_DEFAULT_TIMEOUT_NS};
    struct settings global;
    atomic_init(&jobs->references, 1);
    settings_open(&global, settings->problems, settings_map(settings, "global"), "global");
    settings_duration(&global, "scrape_interval", SECOND_NS, DAY_NS, &reader.interval_ns);
    settings_duration(&global, "scrape_timeout", SECOND_NS / 10, DAY_NS, &reader.timeout_ns);
    settings_close(&global);
    const struct yaml_node *list = settings_list(settings, "scrape_configs");
    for (size_t i = 0; list && i < list->count; i++)
        read_job(&reader, list->values[i]);
    return jobs;
}

struct scrape_jobs *scrape_jobs_ref(struct scrape_jobs *jobs)
{
    atomic_fetch_add(&jobs->references, 1);
    return jobs;
}

void scrape_jobs_unref(struct scrape_jobs *jobs)
{
    if (!jobs || atomic_fetch_sub(&jobs->references, 1) != 1)
        return;
    for (size_t i = 0; i < jobs->count; i++) {
        target_groups_release(&jobs->list[i].groups);
        relabel_release(&jobs->list[i].relabel);
    }
    free(jobs->list);
    arena_release(&jobs->arena);
    free(jobs);
}
