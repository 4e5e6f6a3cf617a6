/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scraping: the server fetches profiles from programs that don't send any themselves. Each target
 * has a loop per profile. A loop begins at once when it is new, and then runs once per interval, at
 * a time within it that depends on its hash, so that targets of a fleet are spread over the
 * interval.
 *
 * One thread runs all requests, since most of them wait for a CPU profile; two store the results,
 * many profiles in one commit; one looks for changed files of targets.
 */
#pragma once

#include "base/limits/budget.h"
#include "server/handler/handler.h"
#include "server/ingest/ingest.h"
#include "server/scrape/scrape_config.h"

#define SCRAPE_LOOPS_MAX 100000
#define SCRAPE_ACTIVE_MAX 4096 /* requests under way, fewer where files are few */

struct scraper;

/* `jobs` may be without any. `answer_bytes` is for answers that aren't stored yet; what it takes to
 * store them is taken from `memory`, which lives longer than this. */
int scraper_start(struct ingest *ingest, struct budget *memory, struct scrape_jobs *jobs,
                  size_t answer_bytes, struct scraper **ret_scraper, struct error *error);

/* Replaces the jobs. Targets that stay the same keep their state. */
int scraper_reload(struct scraper *scraper, struct scrape_jobs *jobs, struct error *error);

/* Ends what is under way. Takes NULL. */
void scraper_stop(struct scraper *scraper);

/* The tenant's targets as JSON, and stats for Prometheus. */
void scraper_write_targets(struct scraper *scraper, const char *tenant, struct buffer *out);
void scraper_write_metrics(struct scraper *scraper, struct buffer *out);

/* The first moment from `from_ns` on that is a loop's own in its interval. */
int64_t scrape_slot_ns(uint64_t hash, int64_t interval_ns, int64_t from_ns);

server_handler api_targets;
