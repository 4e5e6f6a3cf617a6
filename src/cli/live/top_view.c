// SPDX-License-Identifier: Apache-2.0
// Where a user of `assay top` is, and what keys do: see top_view.h; top_draw.c draws it.

#include "cli/live/top_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define SCROLL_COLUMNS 8
#define NAME_OFFSET_MAX 4096

static void release_mark(struct top_place *place)
{
    free((char *)place->mark.name);
    free((char *)place->mark.binary);
    place->mark = (struct top_row){0};
}

static void close_place(struct top_view *view)
{
    struct top_place *place = &view->places[--view->depth];
    release_mark(place);
    free(place->name);
    free(place->binary);
    free(place->process);
    *place = (struct top_place){0};
}

static struct top_place *here(struct top_view *view)
{
    return &view->places[view->depth - 1];
}

void top_view_init(struct top_view *view)
{
    *view = (struct top_view){.depth = 1, .target = "", .backend = "", .cpus = 1};
}

void top_view_release(struct top_view *view)
{
    while (view->depth)
        close_place(view);
}

/* Takes the place over. */
static void open_place(struct top_view *view, struct top_place place)
{
    if (view->depth == TOP_PLACES_MAX) {
        /* The oldest but the first is forgotten. */
        struct top_place oldest = view->places[1];
        memmove(view->places + 1, view->places + 2, (TOP_PLACES_MAX - 2) * sizeof(place));
        view->places[TOP_PLACES_MAX - 1] = oldest;
        close_place(view);
    }
    view->places[view->depth++] = place;
    view->name_offset = 0;
}

static enum top_action open_row(struct top_view *view, const struct top_table *table)
{
    const struct top_place *place = here(view);
    if (place->selected >= table->count)
        return TOP_NOTHING;
    const struct top_row *row = &table->rows[place->selected];
    struct top_place next = {.page = TOP_NEIGHBOURS, .pid = place->pid};
    if (place->page == TOP_PROCESSES) {
        if (!row->pid)
            return TOP_NOTHING;
        next.page = TOP_FUNCTIONS;
        next.pid = row->pid;
        next.process = memory_strdup(row->name);
    } else if (place->page == TOP_NEIGHBOURS && row->relation == TOP_ITSELF) {
        return TOP_NOTHING;
    } else {
        next.name = memory_strdup(row->name);
        next.binary = memory_strdup(row->binary);
        next.process = place->process ? memory_strdup(place->process) : NULL;
    }
    open_place(view, next);
    return TOP_COUNT;
}

static enum top_action go_back(struct top_view *view)
{
    if (view->depth > 1)
        close_place(view);
    else if (*here(view)->filter)
        here(view)->filter[0] = '\0';
    else
        return TOP_NOTHING;
    return TOP_COUNT;
}

static enum top_action switch_page(struct top_view *view)
{
    enum top_page page = view->places[0].page == TOP_PROCESSES ? TOP_FUNCTIONS : TOP_PROCESSES;
    top_view_release(view);
    open_place(view, (struct top_place){.page = page});
    return TOP_COUNT;
}

static void mark_row(struct top_place *place, const struct top_table *table)
{
    const struct top_row *row = &table->rows[place->selected];
    release_mark(place);
    place->mark = (struct top_row){.name = memory_strdup(row->name),
                                   .binary = memory_strdup(row->binary),
                                   .pid = row->pid,
                                   .relation = row->relation};
}

/* Scrolls as little as needed for the cursor to be seen. */
static void reveal(struct top_place *place, size_t count, size_t rows)
{
    place->selected = count ? MIN(place->selected, count - 1) : 0;
    place->first = MIN(place->first, place->selected);
    if (rows && place->selected >= place->first + rows)
        place->first = place->selected - rows + 1;
    /* No empty lines at the end while there are rows above. */
    if (place->first + rows > count)
        place->first = count > rows ? count - rows : 0;
}

static enum top_action move_cursor(struct top_view *view, const struct top_table *table,
                                   size_t rows, long by)
{
    struct top_place *place = here(view);
    if (!table->count)
        return TOP_NOTHING;
    size_t last = table->count - 1;
    if (by < 0)
        place->selected -= MIN(place->selected, (size_t)-by);
    else
        place->selected = (size_t)by > last - place->selected ? last : place->selected + (size_t)by;
    /* At the top the cursor stays there, whatever row comes to the top. */
    place->chosen = place->selected > 0;
    mark_row(place, table);
    reveal(place, table->count, rows);
    return TOP_DRAW;
}

static enum top_action type_filter(struct top_view *view, int key)
{
    char *filter = here(view)->filter;
    size_t length = strlen(filter);
    if (key == KEY_ENTER || key == KEY_UP || key == KEY_DOWN) {
        view->typing = false;
        return TOP_DRAW;
    }
    if (key == KEY_ESCAPE) {
        view->typing = false;
        *filter = '\0';
    } else if (key == KEY_BACKSPACE) {
        /* A character may be several bytes. */
        while (length && ((unsigned char)filter[--length] & 0xc0) == 0x80)
            ;
        filter[length] = '\0';
    } else if (key >= ' ' && key < KEY_UP && length + 1 < TOP_FILTER_BYTES) {
        filter[length] = (char)key;
        filter[length + 1] = '\0';
    } else {
        return TOP_NOTHING;
    }
    here(view)->chosen = false;
    here(view)->selected = here(view)->first = 0;
    return TOP_COUNT;
}

static enum top_action sort_by(struct top_view *view, enum top_order order)
{
    view->order = order;
    return TOP_COUNT;
}

static enum top_action scroll_names(struct top_view *view, bool right)
{
    if (right && view->name_offset < NAME_OFFSET_MAX)
        view->name_offset += SCROLL_COLUMNS;
    else if (!right)
        view->name_offset -= MIN(view->name_offset, SCROLL_COLUMNS);
    return TOP_DRAW;
}

enum top_action top_view_key(struct top_view *view, const struct top_table *table, size_t rows,
                             int key)
{
    if (view->help) {
        view->help = false;
        return key == 'q' ? TOP_QUIT : TOP_DRAW;
    }
    if (view->typing)
        return type_filter(view, key);
    long page = rows > 1 ? (long)rows - 1 : 1, all = (long)table->count;
    switch (key) {
    case 'q':
        return TOP_QUIT;
    case KEY_UP:
        return move_cursor(view, table, rows, -1);
    case KEY_DOWN:
        return move_cursor(view, table, rows, 1);
    case KEY_PAGE_UP:
        return move_cursor(view, table, rows, -page);
    case KEY_PAGE_DOWN:
        return move_cursor(view, table, rows, page);
    case KEY_HOME:
        return move_cursor(view, table, rows, -all);
    case KEY_END:
        return move_cursor(view, table, rows, all);
    case KEY_LEFT:
        return scroll_names(view, false);
    case KEY_RIGHT:
        return scroll_names(view, true);
    case KEY_ENTER:
        return open_row(view, table);
    case KEY_ESCAPE:
    case KEY_BACKSPACE:
        return go_back(view);
    case 's':
        return sort_by(view, TOP_BY_SELF);
    case 't':
        return sort_by(view, TOP_BY_TOTAL);
    case 'p':
        return switch_page(view);
    case 'k':
        view->no_kernel = !view->no_kernel;
        return TOP_COUNT;
    case ' ':
        view->paused = !view->paused && !view->ended;
        return TOP_DRAW;
    case '/':
        view->typing = here(view)->page != TOP_NEIGHBOURS;
        return TOP_DRAW;
    case '?':
    case 'h':
        view->help = true;
        return TOP_DRAW;
    default:
        return TOP_NOTHING;
    }
}

void top_view_count(const struct top_view *view, const struct top_window *window,
                    struct top_table *ret_table)
{
    const struct top_place *place = &view->places[view->depth - 1];
    struct top_query query = {.order = view->order,
                              .no_kernel = view->no_kernel,
                              .pid = place->pid,
                              .filter = place->filter};
    if (place->page == TOP_NEIGHBOURS)
        top_neighbours(window, &query, place->name, place->binary, ret_table);
    else if (place->page == TOP_PROCESSES)
        top_processes(window, &query, ret_table);
    else
        top_functions(window, &query, ret_table);
}

static bool same_row(const struct top_row *a, const struct top_row *b)
{
    return a->pid == b->pid && a->relation == b->relation &&
           (a->pid || (!strcmp(a->name, b->name) && !strcmp(a->binary, b->binary)));
}

void top_view_follow(struct top_view *view, const struct top_table *table, size_t rows)
{
    struct top_place *place = here(view);
    if (!place->chosen && place->page != TOP_NEIGHBOURS)
        place->selected = 0;
    for (size_t i = 0; i < table->count; i++)
        if (place->chosen ? same_row(&table->rows[i], &place->mark)
                          : place->page == TOP_NEIGHBOURS && table->rows[i].relation == TOP_ITSELF)
            place->selected = i;
    reveal(place, table->count, rows);
}
