// SPDX-License-Identifier: Apache-2.0
// A terminal by termios and escape sequences: see terminal.h. Signals come through a signalfd, so
// that nothing but giving the terminal back after a crash happens in a signal handler.

#include "cli/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

/* Alternate screen, no cursor, lines that are too long are cut; and the way back. */
#define ENTER_SCREEN "\033[?1049h\033[?25l\033[?7l"
#define LEAVE_SCREEN "\033[0m\033[?7h\033[?25h\033[?1049l"

/* How long after an escape character the rest of a key's sequence may take. */
#define SEQUENCE_MS 30

struct terminal {
    struct termios before;
    sigset_t mask_before;
    int signals; /* a signalfd */
    int ended_by;
    char input[64];
    size_t input_length;
    struct screen shown;
    size_t rows, columns;
};

/* For handlers of signals that end the program at once. */
static struct termios restored_modes;
static volatile sig_atomic_t must_restore;

static const int taken_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction crash_actions[ARRAY_LENGTH(crash_signals)];

/* Only what a signal handler may do. */
static void restore(void)
{
    if (!must_restore)
        return;
    must_restore = 0;
    ssize_t written = write(STDOUT_FILENO, LEAVE_SCREEN, sizeof(LEAVE_SCREEN) - 1);
    (void)written;
    tcsetattr(STDIN_FILENO, TCSANOW, &restored_modes);
}

static void crash(int signal_number)
{
    restore();
    for (size_t i = 0; i < ARRAY_LENGTH(crash_signals); i++)
        if (crash_signals[i] == signal_number)
            sigaction(signal_number, &crash_actions[i], NULL);
    raise(signal_number); /* comes when this handler is over, to whoever had it before */
}

static void take_crashes(bool take)
{
    for (size_t i = 0; i < ARRAY_LENGTH(crash_signals); i++) {
        struct sigaction action = {.sa_handler = crash};
        if (take)
            sigaction(crash_signals[i], &action, &crash_actions[i]);
        else
            sigaction(crash_signals[i], &crash_actions[i], NULL);
    }
}

void screen_reset(struct screen *screen, size_t rows, size_t columns)
{
    for (size_t i = rows; i < screen->line_count; i++)
        buffer_release(&screen->lines[i]);
    if (rows != screen->line_count)
        screen->lines = memory_resize(screen->lines, rows, sizeof(*screen->lines));
    for (size_t i = 0; i < rows; i++) {
        if (i >= screen->line_count)
            screen->lines[i] = (struct buffer){0};
        screen->lines[i].length = 0;
    }
    screen->line_count = screen->rows = rows;
    screen->columns = columns;
}

void screen_release(struct screen *screen)
{
    for (size_t i = 0; i < screen->line_count; i++)
        buffer_release(&screen->lines[i]);
    free(screen->lines);
    *screen = (struct screen){0};
}

static size_t side(size_t cells, size_t otherwise)
{
    return cells ? MIN(cells, (size_t)TERMINAL_SIDE_MAX) : otherwise;
}

/* The contents of the terminal are no longer known. */
static void forget_screen(struct terminal *terminal)
{
    struct winsize size = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    terminal->rows = side(size.ws_row, 24);
    terminal->columns = side(size.ws_col, 80);
    screen_reset(&terminal->shown, 0, 0);
}

static void enter(struct terminal *terminal)
{
    struct termios modes = terminal->before;
    modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    modes.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | ISTRIP);
    modes.c_cc[VMIN] = 0;
    modes.c_cc[VTIME] = 0;
    restored_modes = terminal->before;
    must_restore = 1;
    tcsetattr(STDIN_FILENO, TCSANOW, &modes);
    file_write_all(STDOUT_FILENO, ENTER_SCREEN, sizeof(ENTER_SCREEN) - 1);
    forget_screen(terminal);
}

int terminal_new(struct terminal **ret_terminal, struct error *error)
{
    struct terminal *terminal = memory_zalloc(1, sizeof(*terminal));
    sigset_t taken;
    if (tcgetattr(STDIN_FILENO, &terminal->before) < 0) {
        free(terminal);
        return error_set_errno(error, -errno, "Failed to use standard input as a terminal");
    }
    sigemptyset(&taken);
    for (size_t i = 0; i < ARRAY_LENGTH(taken_signals); i++)
        sigaddset(&taken, taken_signals[i]);
    pthread_sigmask(SIG_BLOCK, &taken, &terminal->mask_before);
    terminal->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (terminal->signals < 0) {
        int r = -errno;
        pthread_sigmask(SIG_SETMASK, &terminal->mask_before, NULL);
        free(terminal);
        return error_set_errno(error, r, "Failed to receive signals");
    }
    static bool at_exit;
    if (!at_exit)
        atexit(restore);
    at_exit = true;
    take_crashes(true);
    enter(terminal);
    *ret_terminal = terminal;
    return 0;
}

void terminal_free(struct terminal *terminal)
{
    if (!terminal)
        return;
    int ended_by = terminal->ended_by;
    restore();
    take_crashes(false);
    close(terminal->signals);
    pthread_sigmask(SIG_SETMASK, &terminal->mask_before, NULL);
    screen_release(&terminal->shown);
    free(terminal);
    if (ended_by && ended_by != SIGINT)
        raise(ended_by);
}

/* As Ctrl-Z would without us: the shell gets its terminal back, and we go on when it says so. */
static void stop(struct terminal *terminal)
{
    sigset_t stops;
    restore();
    sigemptyset(&stops);
    sigaddset(&stops, SIGTSTP);
    raise(SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stops, NULL);
    pthread_sigmask(SIG_BLOCK, &stops, NULL);
    enter(terminal);
}

static unsigned take_signals(struct terminal *terminal)
{
    struct signalfd_siginfo info;
    unsigned events = 0;
    while (read(terminal->signals, &info, sizeof(info)) == sizeof(info)) {
        int signal_number = (int)info.ssi_signo;
        if (signal_number == SIGTSTP) {
            stop(terminal);
            events |= TERMINAL_SIZE;
        } else if (signal_number == SIGCONT) {
            /* Another program may have changed the terminal in between. */
            enter(terminal);
            events |= TERMINAL_SIZE;
        } else if (signal_number == SIGWINCH) {
            forget_screen(terminal);
            events |= TERMINAL_SIZE;
        } else {
            terminal->ended_by = signal_number;
            events |= TERMINAL_END;
        }
    }
    return events;
}

/* False at the end of the terminal. */
static bool take_input(struct terminal *terminal)
{
    size_t room = sizeof(terminal->input) - terminal->input_length;
    if (!room)
        return true;
    ssize_t got = read(STDIN_FILENO, terminal->input + terminal->input_length, room);
    if (got > 0)
        terminal->input_length += (size_t)got;
    return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

unsigned terminal_wait(struct terminal *terminal, int other_fd, int timeout_ms)
{
    struct pollfd files[] = {{.fd = terminal->signals, .events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = other_fd, .events = POLLIN}};
    unsigned events = 0;
    if (terminal->input_length)
        timeout_ms = 0;
    if (poll(files, ARRAY_LENGTH(files), timeout_ms) < 0 && errno != EINTR)
        return TERMINAL_END;
    if (files[0].revents)
        events |= take_signals(terminal);
    if (files[1].revents && !take_input(terminal))
        events |= TERMINAL_END;
    if (terminal->input_length)
        events |= TERMINAL_KEY;
    if (files[2].revents)
        events |= TERMINAL_OTHER;
    return events;
}

/* The meaning of the last byte of a sequence with the given number. */
static int sequence_key(char last, unsigned number)
{
    static const int letters[26] = {
        ['A' - 'A'] = KEY_UP,    ['B' - 'A'] = KEY_DOWN, ['C' - 'A'] = KEY_RIGHT,
        ['D' - 'A'] = KEY_LEFT,  ['F' - 'A'] = KEY_END,  ['H' - 'A'] = KEY_HOME,
        ['M' - 'A'] = KEY_ENTER,
    };
    static const int numbers[] = {[1] = KEY_HOME,      [4] = KEY_END,  [5] = KEY_PAGE_UP,
                                  [6] = KEY_PAGE_DOWN, [7] = KEY_HOME, [8] = KEY_END};
    int key = 0;
    if (last >= 'A' && last <= 'Z')
        key = letters[last - 'A'];
    else if (last == '~' && number < ARRAY_LENGTH(numbers))
        key = numbers[number];
    return key ? key : KEY_UNKNOWN;
}

int terminal_parse_key(const char *bytes, size_t count, bool complete, size_t *ret_length)
{
    *ret_length = count ? 1 : 0;
    if (!count)
        return KEY_NONE;
    if (bytes[0] == '\n')
        return KEY_ENTER;
    if (bytes[0] == '\b')
        return KEY_BACKSPACE;
    if (bytes[0] != KEY_ESCAPE)
        return (unsigned char)bytes[0];
    bool introduced = count > 1 && (bytes[1] == '[' || bytes[1] == 'O');
    if (count > 1 && !introduced)
        return KEY_ESCAPE; /* pressed for itself; another key follows */
    unsigned number = 0;
    for (size_t i = 2; introduced && i < count; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x40 && c <= 0x7e) {
            *ret_length = i + 1;
            return sequence_key((char)c, number);
        }
        if (c < 0x20 || c > 0x7e) {
            *ret_length = i;
            return KEY_UNKNOWN;
        }
        /* Modifiers come behind a semicolon, and change nothing here. */
        if (c >= '0' && c <= '9' && number < 1000 && !memchr(bytes + 2, ';', i - 2))
            number = number * 10 + (c - '0');
    }
    if (!complete) {
        *ret_length = 0;
        return KEY_NONE;
    }
    *ret_length = introduced ? count : 1;
    return introduced && count > 2 ? KEY_UNKNOWN : KEY_ESCAPE;
}

int terminal_read_key(struct terminal *terminal)
{
    size_t length;
    bool full = terminal->input_length == sizeof(terminal->input);
    int key = terminal_parse_key(terminal->input, terminal->input_length, full, &length);
    if (!length && terminal->input_length) {
        struct pollfd file = {.fd = STDIN_FILENO, .events = POLLIN};
        bool more = poll(&file, 1, SEQUENCE_MS) > 0 && take_input(terminal);
        key = terminal_parse_key(terminal->input, terminal->input_length, !more, &length);
        if (!length)
            return KEY_NONE; /* terminal_wait comes back here at once */
    }
    terminal->input_length -= length;
    memmove(terminal->input, terminal->input + length, terminal->input_length);
    return key;
}

void terminal_size(const struct terminal *terminal, size_t *ret_rows, size_t *ret_columns)
{
    *ret_rows = terminal->rows;
    *ret_columns = terminal->columns;
}

void terminal_show(struct terminal *terminal, const struct screen *screen)
{
    _cleanup_buffer_ struct buffer out = {0};
    struct screen *shown = &terminal->shown;
    bool all = shown->rows != screen->rows || shown->columns != screen->columns;
    if (all) {
        screen_reset(shown, screen->rows, screen->columns);
        buffer_add_text(&out, "\033[0m\033[2J");
    }
    for (size_t i = 0; i < screen->rows; i++) {
        const struct buffer *line = &screen->lines[i];
        struct buffer *old = &shown->lines[i];
        if (line->length == old->length &&
            (!line->length || !memcmp(line->data, old->data, line->length)))
            continue;
        /* Cleared first: behind a full line the cursor is still on its last column. */
        buffer_printf(&out, "\033[%zuH\033[K", i + 1);
        buffer_add(&out, line->data, line->length);
        buffer_add_text(&out, "\033[0m");
        old->length = 0;
        buffer_add(old, line->data, line->length);
    }
    if (out.length)
        file_write_all(STDOUT_FILENO, out.data, out.length);
}
