// SPDX-License-Identifier: Apache-2.0
// From processes to labels: see targets.h.

#include "agent/targets.h"

#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/memory.h"

#define UNUSED_NS (60 * 1000000000ll)      /* forgotten after this time without a sample */
#define LOOK_AGAIN_NS (300 * 1000000000ll) /* cgroups change while a process lives */
#define LOOK_SOON_NS (20 * 1000000000ll)   /* at what is new to others, too */
#define SHORT_ID_BYTES 12                  /* of container and build ids, as people show them */
#define KERNEL_SERVICE "kernel"
#define PROCESS_LABELS_MAX 256 /* more than any policy lets through by default */

/* Relabelling may look at anything. */
static bool is_user_wanted(const struct agent_settings *settings)
{
    bool wanted = settings->label_rules.relabel.count > 0;
    for (size_t i = 0; i < settings->select_count; i++)
        wanted = wanted || settings->select[i].users.count > 0;
    for (size_t i = 0; i < settings->rule_count; i++)
        wanted = wanted || settings->rules[i].match.users.count > 0;
    return wanted;
}

void targets_init(struct targets *targets, struct agent_settings *settings)
{
    *targets = (struct targets){
        .settings = settings, .proc = "/proc", .user_wanted = is_user_wanted(settings)};
    targets->host_root = "/proc/1/root";
    pod_file_init(&targets->pod_file, settings->pod_labels_file, targets->proc);
}

static void target_release(struct target *target)
{
    free(target->labels);
    free(target->environment);
    free(target->cgroup);
}

void targets_release(struct targets *targets)
{
    for (size_t i = 0; i < targets->count; i++)
        target_release(&targets->list[i]);
    free(targets->list);
    pod_file_release(&targets->pod_file);
    id_table_release(&targets->index);
}

static struct target *find(const struct targets *targets, uint64_t number)
{
    struct id_probe probe = id_probe_start(hash_word(number));
    uint32_t id;
    while ((id = id_table_next(&targets->index, &probe)) != ID_NONE)
        if (targets->list[id].number == number)
            return &targets->list[id];
    return NULL;
}

/* ---- label sets in little memory ---- */

static char *pack(const struct labels *labels)
{
    struct buffer packed = {0};
    for (size_t i = 0; i < labels->count; i++) {
        buffer_add(&packed, labels->list[i].name, strlen(labels->list[i].name) + 1);
        buffer_add(&packed, labels->list[i].value, strlen(labels->list[i].value) + 1);
    }
    buffer_add_char(&packed, '\0');
    return memory_resize(packed.data, packed.length, 1);
}

/* The next label; NULL behind the last. */
static const char *next_packed(const char *packed, const char **ret_name, const char **ret_value)
{
    if (!*packed)
        return NULL;
    *ret_name = packed;
    *ret_value = packed + strlen(packed) + 1;
    return *ret_value + strlen(*ret_value) + 1;
}

/* ---- describing ---- */

static void set_default(struct labels *labels, const char *name, const char *value)
{
    if (value && *value && !labels_get(labels, name))
        labels_set(labels, name, value);
}

static void set_short(struct labels *labels, const char *name, const char *id)
{
    char text[SHORT_ID_BYTES + 1];
    snprintf(text, sizeof(text), "%s", id);
    set_default(labels, name, text);
}

/* Labels that relabelling can refer to; they are not sent. */
static void set_meta(struct labels *labels, const struct process_facts *facts)
{
    char pid[16];
    snprintf(pid, sizeof(pid), "%u", facts->pid);
    labels_set(labels, "__meta_process_pid", pid);
    labels_set(labels, "__meta_process_name", facts->name);
    labels_set(labels, "__meta_process_exe", facts->exe ? facts->exe : "");
    labels_set(labels, "__meta_process_user", facts->user);
    labels_set(labels, "__meta_cgroup", facts->cgroup);
    labels_set(labels, "__meta_systemd_unit", facts->identity.unit);
    labels_set(labels, "__meta_container_id", facts->identity.container_id);
    labels_set(labels, "__meta_container_runtime", facts->identity.runtime);
    labels_set(labels, "__meta_pod_uid", facts->identity.pod_uid);
}

static void remove_meta(struct labels *labels)
{
    for (size_t i = labels->count; i-- > 0;)
        if (!strncmp(labels->list[i].name, "__", 2))
            labels_remove(labels, labels->list[i].name);
}

/* As label_rules_apply, but that what only relabelling may see is gone before limits count it. */
static bool apply_rules(struct label_rules *rules, const struct process_facts *facts,
                        struct labels *labels)
{
    set_meta(labels, facts);
    if (!relabel_apply(&rules->relabel, labels))
        return false;
    remove_meta(labels);
    label_policy_names(rules->policy, labels);
    redactor_labels(rules->redactor, labels);
    label_policy_values(rules->policy, "", monotonic_ns(), labels);
    set_default(labels, LABEL_SERVICE_NAME, "unknown_service");
    return true;
}

static void add_all(struct labels *labels, const struct labels *more)
{
    for (size_t i = 0; i < more->count; i++)
        set_default(labels, more->list[i].name, more->list[i].value);
}

static const struct target_rule *find_rule(const struct agent_settings *settings,
                                           const struct process_facts *facts)
{
    for (size_t i = 0; i < settings->rule_count; i++)
        if (target_matches(&settings->rules[i].match, facts))
            return &settings->rules[i];
    return NULL;
}

static bool is_selected(const struct agent_settings *settings, const struct process_facts *facts)
{
    for (size_t i = 0; i < settings->select_count; i++)
        if (target_matches(&settings->select[i], facts))
            return true;
    return !settings->select_count;
}

/* In order of trust: what an administrator says, what the program says of itself, where it runs,
 * what it is. */
bool targets_describe(struct targets *targets, const struct process_facts *facts,
                      const char *build_id, struct labels *labels)
{
    struct agent_settings *settings = targets->settings;
    const struct cgroup_identity *identity = &facts->identity;
    const struct target_rule *rule = find_rule(settings, facts);
    if (!is_selected(settings, facts) || (rule && rule->drop))
        return false;
    if (rule)
        labels_copy(labels, &rule->labels);
    add_all(labels, &facts->environment);
    if (targets->pods && identity->container_id[0])
        pods_label(targets->pods, identity->pod_uid, identity->container_id, labels);
    if (identity->container_id[0] && !labels_get(labels, "container"))
        container_label(targets->host_root, identity->container_id, labels);
    if (!facts->kernel)
        pod_file_label(&targets->pod_file, identity->pod_uid, monotonic_ns(), labels);
    set_short(labels, "container", identity->container_id);
    set_default(labels, "pod", identity->pod_uid);
    add_all(labels, &settings->external_labels);
    if (facts->kernel)
        set_default(labels, LABEL_SERVICE_NAME, KERNEL_SERVICE);
    if (!identity->container_id[0])
        set_default(labels, LABEL_SERVICE_NAME, identity->unit);
    /* The name of a program in memory is its creator's choice. */
    bool is_file = facts->exe && strncmp(facts->exe, "/memfd:", 7);
    set_default(labels, LABEL_SERVICE_NAME, is_file ? path_name(facts->exe) : NULL);
    set_default(labels, LABEL_SERVICE_NAME, facts->name);
    set_short(labels, "version", build_id);
    set_default(labels, "runtime", facts->runtime);
    set_default(labels, "runtime_version", facts->runtime_version);
    return apply_rules(&settings->label_rules, facts, labels);
}

/* ---- the table ---- */

/* It ended before its cgroup could be read: it gets its parent's. */
static void inherit(struct process_facts *facts, const struct target *parent)
{
    const char *name, *value, *at = parent->environment;
    while ((at = next_packed(at, &name, &value)))
        labels_set(&facts->environment, name, value);
    free(facts->cgroup);
    facts->cgroup = memory_strdup(parent->cgroup);
    memcpy(facts->user, parent->user, sizeof(facts->user));
    facts->identity = parent->identity;
}

static void look_at(struct targets *targets, const struct capture_process *process,
                    struct target *target, int64_t now_ns)
{
    struct process_facts facts;
    _cleanup_labels_ struct labels labels = {0};
    const struct target *parent = process->parent ? find(targets, process->parent) : NULL;
    process_facts_read(targets->proc, process->pid, process->name, process->program,
                       &targets->settings->variables, targets->user_wanted, &facts);
    facts.runtime = process->runtime;
    facts.runtime_version = process->runtime_version;
    if (facts.gone && parent)
        inherit(&facts, parent);
    for (size_t i = 0; i < process->attribute_count; i++)
        environment_attribute(process->attributes[i].key, process->attributes[i].value,
                              &facts.environment);
    target->published = process->published;
    target_release(target);
    target->unwanted = !targets_describe(targets, &facts, process->build_id, &labels);
    target->labels = pack(&labels);
    target->environment = pack(&facts.environment);
    target->cgroup = TAKE_PTR(facts.cgroup);
    memcpy(target->user, facts.user, sizeof(target->user));
    target->identity = facts.identity;
    target->looked_ns = now_ns;
    target->pid = process->pid;
    /* The list of pods may not have a new one yet. */
    const char *pod = labels_get(&labels, "pod");
    if (targets->pods && pod && !strcmp(pod, facts.identity.pod_uid))
        target->looked_ns -= LOOK_AGAIN_NS - LOOK_SOON_NS;
    targets->dropped += target->unwanted;
    process_facts_release(&facts);
}

/* All that is known is forgotten: it is looked up again when it is needed. */
static void forget_all(struct targets *targets)
{
    for (size_t i = 0; i < targets->count; i++)
        target_release(&targets->list[i]);
    targets->forgotten += targets->count;
    targets->count = 0;
    id_table_clear(&targets->index);
}

static struct target *get(struct targets *targets, const struct capture_process *process,
                          int64_t now_ns)
{
    struct target *target = find(targets, process->number);
    if (target && target->published == process->published &&
        now_ns - target->looked_ns < LOOK_AGAIN_NS)
        return target;
    if (!target) {
        if (targets->count == TARGETS_MAX)
            forget_all(targets);
        array_reserve(targets->list, targets->capacity, targets->count + 1);
        id_table_insert(&targets->index, hash_word(process->number), (uint32_t)targets->count);
        target = &targets->list[targets->count++];
        *target = (struct target){.number = process->number};
    }
    look_at(targets, process, target, now_ns);
    return target;
}

uint32_t targets_label(void *context, const struct capture_process *process,
                       struct profile *profile)
{
    int64_t now_ns = monotonic_ns();
    struct target *target = get(context, process, now_ns);
    target->used_ns = now_ns;
    if (target->unwanted)
        return CAPTURE_UNWANTED;
    struct profile_label list[PROCESS_LABELS_MAX];
    const char *name, *value, *at = target->labels;
    size_t count = 0;
    while (count < PROCESS_LABELS_MAX && (at = next_packed(at, &name, &value)))
        list[count++] = (struct profile_label){.key = profile_cstring(profile, name),
                                               .text = profile_cstring(profile, value)};
    return profile_label_set(profile, list, count);
}

uint64_t target_service_hash(const char *name)
{
    return XXH3_64bits(name, strlen(name));
}

size_t targets_services(const struct targets *targets, struct target_service **list,
                        size_t *capacity)
{
    size_t count = 0;
    array_reserve(*list, *capacity, targets->count);
    for (size_t i = 0; i < targets->count; i++) {
        const struct target *target = &targets->list[i];
        const char *name, *value, *at = target->unwanted ? "" : target->labels;
        while ((at = next_packed(at, &name, &value)))
            if (!strcmp(name, LABEL_SERVICE_NAME))
                (*list)[count++] =
                    (struct target_service){.pid = target->pid, .hash = target_service_hash(value)};
    }
    return count;
}

void targets_tidy(struct targets *targets, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < targets->count; i++) {
        if (now_ns - targets->list[i].used_ns > UNUSED_NS)
            target_release(&targets->list[i]);
        else
            targets->list[kept++] = targets->list[i];
    }
    if (kept == targets->count)
        return;
    targets->count = kept;
    id_table_clear(&targets->index);
    for (size_t i = 0; i < kept; i++)
        id_table_insert(&targets->index, hash_word(targets->list[i].number), (uint32_t)i);
}
