// SPDX-License-Identifier: Apache-2.0
// Random lives of a store whose files are damaged, against a model: the store in memory, given the
// same. Batches are written, compacted, rolled up, deleted and read, the store is closed and
// opened, and in between files are flipped, zeroed, cut, overwritten, and pages of them exchanged.
// Days whose files nobody touched give what the model does. Others give it too, or less, and say
// so; never a stack or a value that nobody wrote.
//
// STORE_MODEL_ROUNDS is how many lives there are (6), STORE_MODEL_SEED the first one's seed.

#include <fcntl.h>
#include <sys/stat.h>

#include "store_pair.h"
#include "unit.h"

#define DAYS 4
#define STEPS 30
#define FILES_MAX 64
#define PAGE_BYTES 2048

struct model {
    struct store *store, *memory;
    uint64_t seed, batches;
    bool suspect[DAYS]; /* a file with data of it was damaged */
    bool unseen[DAYS];  /* while it was open: the index is verified on opening, and once an hour */
    unsigned damages, differences, unnoticed;
    char history[4096]; /* of the last steps */
};

static unsigned roll(struct model *model, unsigned sides)
{
    return sample_random(&model->seed) % sides;
}

static void remember(struct model *model, const char *format, ...)
{
    size_t used = strlen(model->history);
    va_list arguments;
    va_start(arguments, format);
    if (used < sizeof(model->history))
        vsnprintf(model->history + used, sizeof(model->history) - used, format, arguments);
    va_end(arguments);
}

static int64_t day_start(unsigned day)
{
    return TODAY_NS + ((int64_t)day + 1 - DAYS) * DAY_NS;
}

static bool any_suspect(const struct model *model)
{
    for (unsigned day = 0; day < DAYS; day++)
        if (model->suspect[day])
            return true;
    return false;
}

/* ---- what is done ---- */

static void write_some(struct model *model)
{
    unsigned day = roll(model, DAYS);
    struct sample_batch batch;
    int64_t end = MIN(day_start(day) + DAY_NS - MINUTE_NS, (int64_t)test_now_ns);
    sample_batch_make(&batch, model->seed * 1000 + model->batches++, 1 + roll(model, 8),
                      day_start(day), end);
    remember(model, " write:%u", day);
    struct store_batch all = {.tenant = "acme", .profiles = batch.profiles, .count = batch.count};
    struct error error;
    /* A day whose raw data is damaged may not take more: its rollups have what is lost. */
    int r = store_write(model->store, &all, &error);
    if (r < 0 && !model->suspect[day])
        fail_msg("%s:%s", error.text, model->history);
    if (!r)
        write_batch(model->memory, &batch);
    sample_batch_release(&batch);
}

static void maintain_some(struct model *model)
{
    struct error error;
    int r = 1;
    remember(model, " maintain");
    for (int i = 0; i < 1000 && r == 1; i++)
        r = store_maintain(model->store, NULL, &error);
    if (r < 0 && !any_suspect(model))
        fail_msg("%s", error.text);
}

static void open_again(struct model *model)
{
    remember(model, " open");
    store_close(model->store);
    model->store = open_embedded();
    memset(model->unseen, 0, sizeof(model->unseen));
}

static void delete_some(struct model *model)
{
    unsigned day = roll(model, DAYS);
    if (model->suspect[day])
        return;
    _cleanup_selector_ struct selector selector = {0};
    const char *text = selectors[roll(model, 3)];
    assert_int_equal(selector_parse(text, strlen(text), &selector, NULL), 0);
    struct store_selection selection = {.tenant = "acme",
                                        .selector = &selector,
                                        .from_ns = day_start(day),
                                        .to_ns = day_start(day) + DAY_NS};
    struct store_deleted deleted;
    struct error error;
    remember(model, " delete:%u%s", day, text);
    if (store_delete(model->store, &selection, false, &deleted, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(store_delete(model->memory, &selection, false, &deleted, &error), 0);
}

/* ---- damage ---- */

struct victims {
    char paths[FILES_MAX][512];
    int64_t from_ns[FILES_MAX], to_ns[FILES_MAX];
    size_t count;
};

static int note_file(void *context, const struct store_file *file)
{
    struct victims *victims = context;
    if (victims->count == FILES_MAX)
        return 0;
    snprintf(victims->paths[victims->count], sizeof(victims->paths[0]), "%s", file->path);
    victims->from_ns[victims->count] = file->from_ns;
    victims->to_ns[victims->count++] = file->to_ns;
    return 0;
}

static void overwrite(int fd, off_t at, const void *bytes, size_t length)
{
    assert_int_equal(pwrite(fd, bytes, length, at), (ssize_t)length);
}

static void damage_file(struct model *model, const char *path, unsigned kind)
{
    char page[PAGE_BYTES], other[PAGE_BYTES];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat found;
    if (fd < 0 || fstat(fd, &found) < 0)
        fail_msg("%s can't be damaged", path);
    if (found.st_size < 2 * PAGE_BYTES) { /* it was cut before */
        close(fd);
        return;
    }
    unsigned pages = (unsigned)(found.st_size / PAGE_BYTES);
    off_t at = (off_t)roll(model, pages) * PAGE_BYTES, to = (off_t)roll(model, pages) * PAGE_BYTES;
    remember(model, " damage:%u:%s:%lld", kind, strrchr(path, '/') + 1, (long long)at);
    for (size_t i = 0; i < sizeof(page); i++)
        page[i] = (char)roll(model, 256);
    switch (kind) {
    case 0: /* one bit */
    case 1: /* some bytes */
        for (unsigned i = 0; i < (kind ? 60 : 1); i++) {
            off_t byte = (off_t)roll(model, (unsigned)found.st_size);
            assert_int_equal(pread(fd, page, 1, byte), 1);
            page[0] = kind ? (char)roll(model, 256) : (char)(page[0] ^ 1 << roll(model, 8));
            overwrite(fd, byte, page, 1);
        }
        break;
    case 2: /* a page that was never written */
        memset(page, 0, sizeof(page));
        overwrite(fd, at, page, sizeof(page));
        break;
    case 3: /* nonsense in place of one */
        overwrite(fd, at, page, sizeof(page));
        break;
    case 4:
        assert_int_equal(ftruncate(fd, (off_t)roll(model, (unsigned)found.st_size)), 0);
        break;
    case 5: /* a write that went to another page */
        assert_int_equal(pread(fd, page, sizeof(page), at), sizeof(page));
        overwrite(fd, to, page, sizeof(page));
        break;
    case 6: /* two pages, exchanged */
        assert_int_equal(pread(fd, page, sizeof(page), at), sizeof(page));
        assert_int_equal(pread(fd, other, sizeof(other), to), sizeof(other));
        overwrite(fd, to, page, sizeof(page));
        overwrite(fd, at, other, sizeof(other));
        break;
    default: /* the header */
        overwrite(fd, 0, page, 1 + roll(model, 100));
    }
    close(fd);
}

static void damage_some(struct model *model)
{
    struct victims victims = {0};
    /* Whole pages in the wrong place have no wrong checksum: that is found when a file is opened,
     * and by maintenance from time to time. */
    unsigned kind = roll(model, 8);
    bool closed = roll(model, 2) || kind == 5 || kind == 6;
    assert_int_equal(store_files(model->store, note_file, &victims, NULL), 0);
    if (!victims.count)
        return;
    size_t which = roll(model, (unsigned)victims.count);
    if (closed)
        store_close(model->store);
    damage_file(model, victims.paths[which], kind);
    model->damages++;
    for (unsigned day = 0; day < DAYS; day++)
        if (victims.from_ns[which] < day_start(day) + DAY_NS &&
            victims.to_ns[which] > day_start(day)) {
            model->suspect[day] = true;
            model->unseen[day] |= !closed;
        }
    if (closed) {
        model->store = open_embedded();
        memset(model->unseen, 0, sizeof(model->unseen));
    }
}

/* ---- what is read ---- */

static int text_of(void *context, const char *text)
{
    remember(context, "\n  %s", text);
    return 0;
}

static bool has_line(const char *lines, const char *stack, size_t length, long long value)
{
    for (const char *at = lines; *at; at = strchrnul(at, '\n'), at += *at == '\n')
        if (!strncmp(at, stack, length) && at[length] == ' ' && atoll(at + length) >= value)
            return true;
    return false;
}

/* Each stack is one of the model's, with at most its value. */
static void check_part(struct model *model, const char *got, const char *wanted)
{
    for (const char *at = got; *at; at = strchrnul(at, '\n'), at += *at == '\n') {
        const char *end = strchrnul(at, '\n'), *space = memrchr(at, ' ', (size_t)(end - at));
        if (!has_line(wanted, at, (size_t)(space - at), atoll(space)))
            fail_msg("nobody wrote \"%.*s\":%s\ngot:\n%swanted:\n%s", (int)(end - at), at,
                     model->history, got, wanted);
    }
}

static void read_day(struct model *model, unsigned day)
{
    struct store_selection selection = {
        .tenant = "acme", .type = CPU, .from_ns = day_start(day), .to_ns = day_start(day) + DAY_NS};
    struct store_limits limits = {.raw_only = roll(model, 2)};
    struct store_quality quality = {0}, model_quality = {0};
    struct error error;
    _cleanup_buffer_ struct buffer got = {0}, wanted = {0};
    _cleanup_profile_ struct profile profile, model_profile;
    profile_init(&profile, PROFILE_ALL);
    profile_init(&model_profile, PROFILE_ALL);
    assert_int_equal(
        store_merge(model->memory, &selection, &limits, &model_profile, &model_quality, &error), 0);
    int r = store_merge(model->store, &selection, &limits, &profile, &quality, &error);
    if (r < 0) {
        if (!model->suspect[day])
            fail_msg("day %u: %s:%s", day, error.text, model->history);
        return;
    }
    describe_profile(&profile, &got);
    describe_profile(&model_profile, &wanted);
    bool equal = !strcmp(buffer_text(&got), buffer_text(&wanted)) &&
                 quality.windows == model_quality.windows;
    if (!model->suspect[day]) {
        if (!equal || quality.damaged_files || quality.damaged_blocks)
            fail_msg("day %u differs, %u files and %u blocks damaged:%s\ngot:\n%swanted:\n%s", day,
                     quality.damaged_files, quality.damaged_blocks, model->history,
                     buffer_text(&got), buffer_text(&wanted));
        return;
    }
    if (equal)
        return;
    check_part(model, buffer_text(&got), buffer_text(&wanted));
    if (model->unseen[day] && !quality.damaged_files && !quality.damaged_blocks) {
        model->unnoticed++;
        return;
    }
    model->differences++;
    if (!quality.damaged_files && !quality.damaged_blocks) {
        store_check(model->store, text_of, model, NULL);
        print_message("got:\n%swanted:\n%s", buffer_text(&got), buffer_text(&wanted));
        fail_msg("day %u is incomplete (%llu of %llu windows), and nothing says so:%s", day,
                 (unsigned long long)quality.windows, (unsigned long long)model_quality.windows,
                 model->history);
    }
}

static void read_all(struct model *model)
{
    remember(model, " read");
    for (unsigned day = 0; day < DAYS; day++)
        read_day(model, day);
    _cleanup_buffer_ struct buffer text = {0};
    struct store_selection selection = {
        .tenant = "acme", .from_ns = day_start(0), .to_ns = day_start(DAYS)};
    store_series(model->store, &selection, describe_series, &text, NULL);
}

/* ---- lives ---- */

static void step(struct model *model, unsigned number)
{
    switch (roll(model, 12)) {
    case 0:
        maintain_some(model);
        break;
    case 1:
        open_again(model);
        break;
    case 2:
        delete_some(model);
        break;
    case 3:
    case 4:
        if (number > STEPS / 3)
            damage_some(model);
        break;
    case 5:
        test_now_ns += roll(model, 60) * MINUTE_NS;
        break;
    case 6:
    case 7:
        read_all(model);
        break;
    default:
        write_some(model);
    }
}

static void live(uint64_t seed, unsigned *damages, unsigned *differences, unsigned *unnoticed)
{
    struct model model = {.seed = seed};
    remember(&model, "\nseed %llu:", (unsigned long long)seed);
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    assert_int_equal(system("rm -rf data"), 0);
    model.store = open_embedded();
    model.memory = open_memory();
    for (unsigned number = 0; number < STEPS; number++)
        step(&model, number);
    read_all(&model);
    /* What an answer said is still said after a restart, by the check, too. */
    bool differed = model.differences;
    open_again(&model);
    read_all(&model);
    if (differed && !store_check(model.store, text_of, &model, NULL))
        fail_msg("answers were incomplete, and the check finds nothing:%s", model.history);
    if (!any_suspect(&model))
        check_is_clean(model.store);
    store_close(model.store);
    store_close(model.memory);
    *damages += model.damages;
    *differences += model.differences;
    *unnoticed += model.unnoticed;
}

static void damaged_stores_give_no_wrong_answers(void **state)
{
    (void)state;
    const char *rounds = getenv("STORE_MODEL_ROUNDS"), *first = getenv("STORE_MODEL_SEED");
    unsigned count = rounds ? (unsigned)atoi(rounds) : 6;
    unsigned damages = 0, differences = 0, unnoticed = 0;
    uint64_t seed = first ? strtoull(first, NULL, 10) : 1;
    for (unsigned i = 0; i < count; i++)
        live(seed + i, &damages, &differences, &unnoticed);
    print_message(
        "%u lives, %u damages; %u incomplete answers said so, %u did not, of those that may "
        "not\n",
        count, damages, differences, unnoticed);
    assert_true(damages > 0);
}

/* In memory where that is possible: what is durable is another test's subject, and syncs take most
 * of the time. */
static int enter_memory(void **state)
{
    char name[] = "/dev/shm/assay-unit.XXXXXX";
    if (!mkdtemp(name) || chdir(name) < 0)
        return enter_folder(state);
    *state = strdup(name);
    return 0;
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_memory, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(damaged_stores_give_no_wrong_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
