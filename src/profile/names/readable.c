// SPDX-License-Identifier: Apache-2.0
// Names as they are shown: see readable.h. Classes that a JVM makes while it runs have a number, an
// address or a random word in their name, which is another one in each process; '_' takes its
// place. Go instantiates a generic function once per shape of its type arguments, and the name that
// a profile has may be that of any of them; they become "[...]", as in Go's own stack traces.

#include "profile/names/readable.h"

#include <ctype.h>
#include <string.h>

#include "profile/names/demangle.h"

#define RUST_HASH_DIGITS 16

/* The rest of a name, from where a rule begins to look. */
struct rest {
    const char *text;
    size_t length;
};

/* A match of a rule: `kept` bytes stay, then `dropped` bytes are replaced. */
struct part {
    size_t kept, dropped;
};

static size_t count_digits(struct rest rest)
{
    size_t count = 0;
    while (count < rest.length && isdigit((unsigned char)rest.text[count]))
        count++;
    return count;
}

static size_t count_hexadecimal(struct rest rest)
{
    size_t count = 0;
    while (count < rest.length && isxdigit((unsigned char)rest.text[count]))
        count++;
    return count;
}

static size_t count_letters(struct rest rest, bool digits)
{
    size_t count = 0;
    while (count < rest.length && (digits ? isalnum((unsigned char)rest.text[count])
                                          : isalpha((unsigned char)rest.text[count])))
        count++;
    return count;
}

static struct rest after(struct rest rest, size_t count)
{
    return (struct rest){rest.text + count, rest.length - count};
}

static bool begins(struct rest rest, const char *text)
{
    size_t length = strlen(text);
    return rest.length >= length && !memcmp(rest.text, text, length);
}

/* A class's name ends here: before its method, or as perf maps write it ("Lx;::run"). */
static bool ends_class(struct rest rest)
{
    return !rest.length || strchr(".;:)", rest.text[0]);
}

/* "0x0000000800fd7318" or, of old JVMs, "1225373914"; flight recordings have another number behind
 * the first. 0: it is a package or a method. */
static size_t count_class_number(struct rest rest, bool decimal)
{
    size_t count = begins(rest, "0x") ? count_hexadecimal(after(rest, 2)) : 0;
    if (count)
        count += 2;
    else if (decimal)
        count = count_digits(rest);
    if (!count || !ends_class(after(rest, count)))
        return 0;
    struct rest behind = after(rest, count);
    if (behind.length && behind.text[0] == '.') {
        size_t more = count_digits(after(behind, 1));
        if (more && ends_class(after(behind, 1 + more)))
            count += 1 + more;
    }
    return count;
}

/* Behind "$$Lambda": "$669.0x0000000800fd7318", "$14/1225373914", "+0x00007ffa600c4da0", "14". */
static struct part lambda(struct rest rest)
{
    size_t at = rest.length && rest.text[0] == '$';
    size_t number = count_digits(after(rest, at));
    size_t plain = number ? at + number : 0;
    at = plain;
    if (at < rest.length && strchr("./+", rest.text[at])) {
        size_t address = count_class_number(after(rest, at + 1), plain > 0);
        if (address)
            return (struct part){0, at + 1 + address};
    }
    return (struct part){0, plain};
}

/* Behind "LambdaForm$": "MH/0x0000000800c03400", "DMH.1225373914". */
static struct part lambda_form(struct rest rest)
{
    size_t kind = count_letters(rest, false);
    struct rest behind = after(rest, kind);
    size_t number = kind && behind.length && strchr("./+", behind.text[0])
                        ? count_class_number(after(behind, 1), true)
                        : 0;
    return (struct part){kind, number ? number + 1 : 0};
}

/* Any other hidden class, behind the '/', '+' or '.' that comes before its address. Without a
 * method it may be an offset in a binary, which says something. */
static struct part hidden_class(struct rest rest)
{
    if (!begins(rest, "0x") || count_hexadecimal(after(rest, 2)) < 8)
        return (struct part){0};
    size_t count = count_class_number(rest, false);
    return (struct part){0, count < rest.length ? count : 0};
}

static struct part number(struct rest rest)
{
    size_t count = count_digits(rest);
    return (struct part){0, ends_class(after(rest, count)) ? count : 0};
}

/* "jdk.proxy2.$Proxy7": both numbers. */
static struct part proxy_package(struct rest rest)
{
    size_t count = count_digits(rest);
    return (struct part){0, count < rest.length && strchr("./", rest.text[count]) ? count : 0};
}

/* Behind "$$": "EnhancerBySpringCGLIB$$1f2e", "FastClassByGuice$$12ab", "SpringCGLIB$$0". */
static struct part enhancer(struct rest rest)
{
    size_t kind = count_letters(rest, false);
    if (!memmem(rest.text, kind, "By", 2) && !memmem(rest.text, kind, "CGLIB", 5))
        return (struct part){0};
    struct rest behind = after(rest, kind);
    return begins(behind, "$$") ? (struct part){kind + 2, count_letters(after(behind, 2), true)}
                                : (struct part){0};
}

/* Random words of Byte Buddy, Hibernate and Mockito. */
static struct part random_word(struct rest rest)
{
    size_t count = count_letters(rest, true);
    return (struct part){0, count == 8 || (count && count == count_digits(rest)) ? count : 0};
}

/* Behind "$$_jvst": "3ab_1f", and behind "$$_javassist": "_12". */
static struct part javassist(struct rest rest)
{
    size_t count = count_hexadecimal(rest);
    if (count < rest.length && rest.text[count] == '_')
        count += 1 + count_hexadecimal(after(rest, count + 1));
    return (struct part){0, count};
}

/* Ruby's anonymous classes and modules: "0x00007f8b1c0a2b38>". */
static struct part ruby_address(struct rest rest)
{
    size_t count = begins(rest, "0x") ? 2 + count_hexadecimal(after(rest, 2)) : 0;
    return (struct part){0, count < rest.length && rest.text[count] == '>' ? count : 0};
}

/* .NET's compiled expressions: "lambda_method12(class System...Closure,int)". */
static struct part dotnet_lambda(struct rest rest)
{
    size_t count = count_digits(rest);
    struct rest behind = after(rest, count);
    bool closure = begins(behind, "(") && memmem(behind.text, behind.length, "Closure", 7);
    return (struct part){0, closure ? count : 0};
}

/* Behind the name of a static function that LTO has taken to another module: "1379876543210987654",
 * which is another number when anything in the module changes. */
static struct part llvm_module(struct rest rest)
{
    size_t count = count_digits(rest);
    return (struct part){0, count == rest.length || rest.text[count] == '.' ? count : 0};
}

/* Up to the bracket that closes one that was opened before; tags of struct types are quoted and
 * may have any. 0: there is none, because the name was cut. */
static size_t count_type_arguments(struct rest rest)
{
    size_t depth = 1;
    bool quoted = false;
    for (size_t i = 0; i < rest.length; i++) {
        char c = rest.text[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == '[')
            depth++;
        else if (!quoted && c == ']' && !--depth)
            return i;
    }
    return 0;
}

static bool is_elided(struct rest arguments, size_t count)
{
    return count == 3 && !memcmp(arguments.text, "...", 3);
}

/* Behind "[" of "slices.pdqsortOrdered[go.shape.string]". */
static struct part go_shape(struct rest rest)
{
    return (struct part){0, begins(rest, "go.shape.") ? count_type_arguments(rest) : 0};
}

/* Behind "(*" of "sync/atomic.(*Pointer[net.conn]).Load": nothing but Go writes that. */
static struct part go_receiver(struct rest rest)
{
    size_t at = 0;
    while (at < rest.length &&
           (isalnum((unsigned char)rest.text[at]) || rest.text[at] == '_' || rest.text[at] < 0))
        at++;
    if (!at || at == rest.length || rest.text[at++] != '[')
        return (struct part){0};
    struct rest arguments = after(rest, at);
    size_t count = count_type_arguments(arguments);
    if (is_elided(arguments, count) || !begins(after(arguments, count), "])"))
        return (struct part){0};
    return (struct part){at, count};
}

static const struct rule {
    const char *text;
    struct part (*find)(struct rest rest); /* behind the text */
    const char *instead;
    bool begins_word; /* only where the name or one of its parts begins */
} rules[] = {
    {"$$Lambda", lambda, "_", false},
    {"$$_jvst", javassist, "_", false},
    {"$$_javassist", javassist, "_", false},
    {"$$", enhancer, "_", false},
    {"$Proxy", number, "_", true},
    {"$HibernateProxy$", random_word, "_", false},
    {"$ByteBuddy$", random_word, "_", false},
    {"$MockitoMock$", random_word, "_", false},
    {"$auxiliary$", random_word, "_", false},
    {"LambdaForm$", lambda_form, "_", false},
    {"GeneratedMethodAccessor", number, "_", true},
    {"GeneratedConstructorAccessor", number, "_", true},
    {"GeneratedSerializationConstructorAccessor", number, "_", true},
    {"jdk.proxy", proxy_package, "_", true},
    {"jdk/proxy", proxy_package, "_", true},
    {"/", hidden_class, "_", false},
    {"+", hidden_class, "_", false},
    {".", hidden_class, "_", false},
    {".llvm.", llvm_module, "_", false},
    {"#<Class:", ruby_address, "_", false},
    {"#<Module:", ruby_address, "_", false},
    {"lambda_method", dotnet_lambda, "_", false},
    {"[", go_shape, "...", false},
    {"(*", go_receiver, "...", false},
};

/* The first of the rules whose texts begin with a letter, which follow each other. */
static const struct rule *const rules_of[256] = {
    ['$'] = &rules[0],  ['L'] = &rules[9],  ['G'] = &rules[10], ['j'] = &rules[13],
    ['/'] = &rules[15], ['+'] = &rules[16], ['.'] = &rules[17], ['#'] = &rules[19],
    ['l'] = &rules[21], ['['] = &rules[22], ['('] = &rules[23],
};

/* The rule that applies at a place of the name, and what it found; NULL: none. */
static const struct rule *find_rule(const char *name, size_t length, size_t at,
                                    struct part *ret_part)
{
    struct rest rest = {name + at, length - at};
    for (const struct rule *rule = rules_of[(unsigned char)name[at]];
         rule < rules + ARRAY_LENGTH(rules) && rule->text[0] == name[at]; rule++) {
        if (!begins(rest, rule->text) ||
            (rule->begins_word && at && !strchr("./;", name[at - 1]) && name[at - 1] != 'L'))
            continue;
        *ret_part = rule->find(after(rest, strlen(rule->text)));
        if (ret_part->dropped)
            return rule;
    }
    return NULL;
}

/* "::h0123456789abcdef" behind a Rust function that its source has demangled as C++: a hash of the
 * crate, another one in each build. */
static size_t count_rust_hash(struct rest rest)
{
    size_t count = 3 + RUST_HASH_DIGITS;
    if (rest.length < count || !begins(rest, "::h"))
        return 0;
    for (size_t i = 3; i < count; i++)
        if (!strchr("0123456789abcdef", rest.text[i]) || !rest.text[i])
            return 0;
    return rest.length == count || rest.text[count] == '.' ? count : 0;
}

bool name_without_generated(const char *name, size_t length, struct buffer *ret_name)
{
    const size_t start = ret_name->length;
    size_t copied = 0;
    struct part part;
    for (size_t at = 0; at < length; at++) {
        size_t hash =
            at && name[at] == ':' ? count_rust_hash((struct rest){name + at, length - at}) : 0;
        if (hash) {
            buffer_add(ret_name, name + copied, at - copied);
            copied = at + hash;
            at = copied - 1;
            continue;
        }
        const struct rule *rule =
            rules_of[(unsigned char)name[at]] ? find_rule(name, length, at, &part) : NULL;
        if (!rule)
            continue;
        size_t end = at + strlen(rule->text) + part.kept;
        buffer_add(ret_name, name + copied, end - copied);
        buffer_add_text(ret_name, rule->instead);
        copied = end + part.dropped;
        at = copied - 1;
    }
    if (!copied)
        return false;
    buffer_add(ret_name, name + copied, length - copied);
    /* "[T]" can be shorter than "[...]", and text that only looks like Go's doesn't change. */
    if (ret_name->length - start == length && !memcmp(ret_name->data + start, name, length)) {
        ret_name->length = start;
        return false;
    }
    return true;
}

/* The library wants a name that ends with NUL, which those of readers don't. */
static bool demangle_part(const char *name, size_t length, struct buffer *ret_name)
{
    char copy[DEMANGLE_INPUT_MAX + 1];
    if (length > DEMANGLE_INPUT_MAX || memchr(name, '\0', length))
        return false;
    memcpy(copy, name, length);
    copy[length] = '\0';
    return demangle(copy, ret_name);
}

bool name_readable(const char *name, size_t length, struct buffer *ret_name)
{
    const size_t start = ret_name->length;
    if (length < 3 || name[0] != '_' || !strchr("ZR_", name[1]) ||
        !demangle_part(name, length, ret_name))
        return name_without_generated(name, length, ret_name);
    _cleanup_buffer_ struct buffer shorter = {0};
    if (name_without_generated(ret_name->data + start, ret_name->length - start, &shorter)) {
        ret_name->length = start;
        buffer_add(ret_name, shorter.data, shorter.length);
    }
    return true;
}

bool name_of_function(struct name_text own, struct name_text system, struct buffer *ret_name)
{
    if (!own.length)
        return name_readable(system.data, system.length, ret_name);
    bool same = own.length == system.length && !memcmp(own.data, system.data, own.length);
    return system.length && !same ? name_without_generated(own.data, own.length, ret_name)
                                  : name_readable(own.data, own.length, ret_name);
}
