/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The targets and how to scrape them: `scrape_configs` of a configuration file, in Prometheus's
 * form, with the choice of profiles as users of Parca and Alloy know it.
 */
#pragma once

#include <stdatomic.h>

#include "config/settings.h"
#include "label/rules/relabel.h"
#include "server/scrape/discovery.h"

#define SCRAPE_PROFILES_MAX 32
#define SCRAPE_DEFAULT_INTERVAL_NS 15000000000ll
#define SCRAPE_DEFAULT_TIMEOUT_NS 10000000000ll

/* One profile to fetch from a target. */
struct scrape_profile {
    const char *name; /* first part of its types' ids: "memory" */
    const char *path;
    int64_t seconds; /* what it is asked to measure for; 0: it isn't asked */
    bool cumulative; /* of Go's types, those that are known to count from the start do */
};

struct scrape_param {
    const char *name;
    const char **values;
    size_t count;
};

struct scrape_remote;

struct scrape_job {
    const char *name, *tenant, *scheme, *path_prefix;
    int64_t interval_ns, timeout_ns;
    struct scrape_profile profiles[SCRAPE_PROFILES_MAX];
    size_t profile_count;
    struct scrape_param *params;
    size_t param_count;
    struct relabel relabel;

    struct target_groups groups; /* the static ones */
    const char **files;          /* patterns of files with others */
    size_t file_count;
    int64_t refresh_ns;
    struct scrape_remote *remotes; /* services that know others */
    size_t remote_count;

    /* At most one of user, bearer and authorization. Of a secret and its file, at most one. */
    const char *user, *password, *password_file;
    const char *authorization; /* another scheme than Bearer: "Token" */
    const char *credentials, *credentials_file;
    const char *ca_file, *certificate_file, *key_file, *server_name, *proxy;
    bool insecure, redirects;
};

enum remote_kind { REMOTE_HTTP, REMOTE_DNS_A, REMOTE_DNS_AAAA, REMOTE_DNS_SRV, REMOTE_PODS };

/* A service that knows targets. */
struct scrape_remote {
    enum remote_kind kind;
    const char *name; /* a URL, or a name in DNS */
    unsigned port;    /* of addresses */
    int64_t refresh_ns;
    struct scrape_job access; /* how to ask: its secrets, certificates and proxy alone count */
};
#define SCRAPE_REMOTES_MAX 100 /* of a job */

/* All of one configuration. Shared by reference: targets use it until a newer one reaches them. */
struct scrape_jobs {
    atomic_uint references;
    struct scrape_job *list;
    size_t count, capacity;
    struct arena arena;
};

/* Reads `scrape_configs` and the defaults in `global`. Never NULL; what is wrong is added to the
 * settings' problems. */
struct scrape_jobs *scrape_jobs_read(struct settings *settings);
struct scrape_jobs *scrape_jobs_ref(struct scrape_jobs *jobs);
void scrape_jobs_unref(struct scrape_jobs *jobs); /* takes NULL */
