// SPDX-License-Identifier: Apache-2.0
// Redaction: what has to go, what has to stay, and that hostile texts cost no more than their
// length.

#include "base/memory.h"
#include "label/redact/redact.h"
#include "unit.h"

/* Secrets in pieces, so that no scanner of source code takes this file for a leak. */
#define JWT_HEAD                                                                                   \
    "eyJ"                                                                                          \
    "hbGciOiJIUzI1NiJ9"
#define JWT                                                                                        \
    JWT_HEAD ".eyJ"                                                                                \
             "zdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV"
#define GITHUB                                                                                     \
    "ghp"                                                                                          \
    "_16C7e42F292c6912E7710c838347Ae178B4a"
#define AWS                                                                                        \
    "AKIA"                                                                                         \
    "IOSFODNN7EXAMPLE"
#define RANDOM_TEXT "k7Qw/Zx3VbN9t+LmR2cYh5TgJ8sDf4PaE6uXo1Bz"
#define PEM_BEGIN                                                                                  \
    "-----BEGIN RSA "                                                                              \
    "PRIVATE KEY-----"
#define PEM_END                                                                                    \
    "-----END RSA "                                                                                \
    "PRIVATE KEY-----"

struct text_case {
    const char *text, *expected; /* NULL: stays as it is */
};

static void check_one(struct redactor *redactor, enum redact_place place, const char *label,
                      const struct text_case *test)
{
    size_t length = strlen(test->text);
    _cleanup_free_ char *exact = memory_alloc(length);
    memcpy(exact, test->text, length);
    _cleanup_buffer_ struct buffer out = {0};
    bool changed = redactor_text(redactor, place, label, exact, length, &out);
    const char *got = changed ? buffer_text(&out) : test->text;
    const char *expected = test->expected ? test->expected : test->text;
    if (strcmp(got, expected) != 0)
        fail_msg("%s became %s, not %s", test->text, got, expected);
    assert_int_equal(changed, test->expected != NULL);
}

static void check_all(enum redact_place place, const char *label, const struct text_case *cases,
                      size_t count)
{
    struct redactor *redactor = redactor_new();
    for (size_t i = 0; i < count; i++)
        check_one(redactor, place, label, &cases[i]);
    redactor_free(redactor);
}

#define CHECK(place, label, ...)                                                                   \
    do {                                                                                           \
        static const struct text_case cases[] = {__VA_ARGS__};                                     \
        check_all(place, label, cases, ARRAY_LENGTH(cases));                                       \
    } while (0)

static void finds_addresses(void **state)
{
    (void)state;
    CHECK(
        REDACT_LABEL, "x", {"jane.doe@example.com", "[email]"},
        {"to <jane+test@mail.example.co.uk>, and bob@example.org.", "to <[email]>, and [email]."},
        {"user=jane@example.com", "user=[email]"}, {"/home/jane@example.com/x", "/home/[email]/x"},
        {"mailto:jane@example.com", "mailto:[email]"}, {"jürgen@müller.de", "[email]"},
        {"a@b.co", "[email]"}, {"jane@example", NULL}, {"@example.com", NULL}, {"jane@", NULL},
        {"jane@.com", NULL}, {"jane@example.c", NULL},
        /* Units, versions of symbols, modules and packages. */
        {"getty@tty1.service", NULL}, {"user@1000.service", NULL}, {"memcpy@GLIBC_2.14", NULL},
        {"foo@@GLIBC_2.2.5", NULL}, {"puts@plt", NULL},
        {"github.com/pkg/errors@v0.9.1/errors.go", NULL}, {"react@18.2.0", NULL},
        {"lib@v1.0.0-beta.one", NULL}, {"@scope/package", NULL}, {"journald@.service.8.gz", NULL});
}

static void finds_tokens(void **state)
{
    (void)state;
    CHECK(REDACT_LABEL, "x", {JWT, "[token]"}, {"jwt:" JWT ";", "jwt:[token];"},
          {GITHUB, "[token]"}, {"x " GITHUB " y", "x [token] y"}, {AWS, "[token]"},
          {"key " AWS ".", "key [token]."},
          {"glpat"
           "-ABCdef1234567890abcd",
           "[token]"},
          {"xoxb"
           "-1234567890-abcdef",
           "[token]"},
          {"AKIAIOSFODNN7EXAMPLES", NULL}, {"AKIA is short", NULL}, {"ghp_short", NULL},
          {"eyJ.short.x", NULL},
          {"Authorization: Bearer abcdef0123456789", "Authorization: Bearer [token]"},
          {"authorization: bearer abc.def~ghi", NULL}, {"Bearer mF_9.B5f-4.1JqM", "Bearer [token]"},
          {"Basic dXNlcjpwYXNzd29yZA==", "Basic [token]"}, {"basic authentication", NULL},
          {"the bearer certificate", NULL}, {"Bearer [token]", NULL},
          {"postgres://app:hunter2@db/x", "postgres://[credentials]@db/x"},
          {"redis://:p@ss@cache:6379", "redis://[credentials]@cache:6379"},
          {"https://example.com/a:b@c", NULL}, {"https://example.com:8080/", NULL},
          {"std::pair://x", NULL}, {PEM_BEGIN "\nMIIE\n" PEM_END " rest", "[private-key] rest"},
          {PEM_BEGIN "\nMIIE", "[private-key]"}, {"-----BEGIN CERTIFICATE-----", NULL});
}

static void finds_random_texts(void **state)
{
    (void)state;
    CHECK(REDACT_LABEL, "x", {RANDOM_TEXT, "[secret]"},
          {"s3 " RANDOM_TEXT " end", "s3 [secret] end"},
          {"Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZg==", "[secret]"},
          {"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "[secret]"},
          {"k3v9x2m7q1w8z5t4r6y0p3n8b2c7d1f9", "[secret]"},
          /* Names, paths and words. */
          {"checkout-service-production-eu-west-1-blue", NULL},
          {"payments-7d9c6b8f5d-x2x4z.payments-namespace", NULL},
          {"com.example.service.impl.AbstractFactoryBeanImpl2", NULL},
          {"AbstractSingletonProxyFactoryBeanConfiguration3", NULL},
          {"InvalidBasicSelfIssuedNewWithOldTest5EE.crt", NULL},
          {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", NULL},
          {"/opt/MyCompany/Server2/Components/MainModule/bin/run", NULL},
          {"550e8400-e29b-41d4-a716-446655440000", NULL},
          {"POD-550E8400-E29B-41D4-A716-446655440000-bc", NULL},
          {"nginx@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", NULL},
          {"00000000000000000000000000000000", NULL}, {"12345678901234567890123456789012345", NULL},
          {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
          {"the quick brown fox jumps over the lazy dog 1234", NULL});
    /* Labels that say what they hold. */
    static const char *const labels[] = {"build_id",
                                         "trace_id",
                                         "git_commit",
                                         "vcs.ref.revision",
                                         "container.id",
                                         "sha256",
                                         "process.executable.build_id.gnu",
                                         "service.instance.id",
                                         "k8s.pod.uid"};
    static const struct text_case id = {"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", NULL};
    for (size_t i = 0; i < ARRAY_LENGTH(labels); i++)
        check_all(REDACT_LABEL, labels[i], &id, 1);
    /* But not a token among them. */
    CHECK(REDACT_LABEL, "trace_id", {GITHUB, "[token]"});
}

static void finds_assignments(void **state)
{
    (void)state;
    CHECK(REDACT_LABEL, "x", {"password=hunter2", "password=[secret]"},
          {"a=b&api_key=123&c=d", "a=b&api_key=[secret]&c=d"},
          {"{\"clientSecret\": \"abc\"}", "{\"clientSecret\": \"[secret]\"}"},
          {"DB_PASSWD='x y'", "DB_PASSWD='[secret] y'"}, {"password=", NULL},
          {"password=$PASSWORD", NULL}, {"password=[secret]", NULL}, {"PWD=/home/x", NULL},
          {"max_tokens=5", NULL}, {"Token::parse", NULL}, {"--password hunter2", NULL},
          {"secret=Bearer abcdef0123456789", "secret=Bearer [token]"});
    CHECK(REDACT_COMMAND, NULL, {"mysql --password hunter2 -u x", "mysql --password [secret] -u x"},
          {"curl --token=abc", "curl --token=[secret]"}, {"x --password -u", NULL},
          {"--password", NULL}, {"the password is", NULL});
    /* A label that says it holds a secret holds nothing else. */
    CHECK(REDACT_LABEL, "db_password", {"hunter2", "[secret]"}, {"", NULL}, {"[secret]", NULL});
    CHECK(REDACT_LABEL, "apiKey", {"x", "[secret]"});
    CHECK(REDACT_LABEL, "tokens", {"5", NULL});
}

static void finds_cards(void **state)
{
    (void)state;
    CHECK(REDACT_LABEL, "x", {"4111111111111111", "[card]"}, {"4111 1111 1111 1111", "[card]"},
          {"card 4111-1111-1111-1111!", "card [card]!"}, {"378282246310005", "[card]"},
          {"3782 822463 10005", "[card]"}, {"5555555555554444", "[card]"},
          {"2223003122003222", "[card]"}, {"30569309025904", "[card]"},
          {"6011111111111117", "[card]"}, {"3530111333300000", "[card]"},
          {"2024 4111 1111 1111 1111", "2024 [card]"},
          /* Wrong sum, issuer, length, grouping; parts of something longer. */
          {"4111111111111112", NULL}, {"9111111111111111", NULL}, {"41111111111111", NULL},
          {"4-111111111111111", NULL}, {"411111111111111111111111", NULL},
          {"a4111111111111111", NULL}, {"4111111111111111b", NULL}, {"0.4111111111111111", NULL},
          {"1700000000000000000", NULL}, {"4111 1111-1111 1111", NULL});
}

static void finds_ip_addresses(void **state)
{
    (void)state;
    CHECK(REDACT_LABEL, "x", {"10.0.0.1", "[ip]"}, {"http://192.168.1.20:80/x", "http://[ip]:80/x"},
          {"10.0.0.0/8", "[ip]/8"}, {"from 8.8.8.8.", "from [ip]."}, {"host/10.1.2.3", "host/[ip]"},
          {"10.0.0.1-10.0.0.9", "[ip]-[ip]"}, {"2001:db8::1", "[ip]"},
          {"[fe80::1%eth0]:80", "[[ip]%eth0]:80"}, {"2001:db8:0:1:1:1:1:1", "[ip]"},
          {"::ffff:10.0.0.1", "::ffff:[ip]"}, {"2001:db8::1: refused", "[ip]: refused"},
          /* Nobody's, and what only looks like one. */
          {"127.0.0.1", NULL}, {"0.0.0.0", NULL}, {"255.255.255.0", NULL}, {"::1", NULL},
          {"::", NULL}, {"1.2.3", NULL}, {"1.2.3.4.5", NULL}, {"1.2.3.256", NULL},
          {"01.2.3.4", NULL}, {"v1.2.3.4", NULL}, {"libx.so.1.2.3.4", NULL}, {"foo-1.2.3.4", NULL},
          {"foo-1.2.3.4.jar", NULL}, {"version 1.2.3.4", NULL}, {"1.2.5.1-2", NULL},
          {"1.2.3.4+dfsg", NULL}, {"version=\"1.2.3.4\"", NULL}, {"a::b", NULL},
          {"std::add::fed", NULL}, {"abc::def", NULL}, {"face1::b2", NULL},
          {"00:1a:2b:3c:4d:5e", NULL}, {"50:06:01:60:bb:20:13:4a", NULL}, {"12:30:45", NULL},
          {"12:30:45.123", NULL});
    CHECK(REDACT_LABEL, "version", {"1.2.3.4", NULL});
    CHECK(REDACT_LABEL, "instance", {"10.0.0.1:8080", NULL});
    CHECK(REDACT_LABEL, "host.name", {"10.0.0.1", NULL});
    CHECK(REDACT_LABEL, "client_ip", {"10.0.0.1", "[ip]"});
}

/* Functions and files: long mangled names stay, tokens and addresses go. */
static void leaves_names_alone(void **state)
{
    (void)state;
    CHECK(REDACT_NAME, NULL, {"_ZNSt6vectorIiSaIiEE9push_backERKi", NULL},
          {"_RNvNtCs1234_7mycrate3foo17h0123456789abcdefE", NULL},
          {"/nix/store/0c0v9k8q4cgxjyvi4nhnj1k7x5v4y3z2-glibc-2.37/lib/libc.so", NULL},
          {"Foo<4111111111111111>::password=x", NULL},
          {"/home/jane@example.com/app.py", "/home/[email]/app.py"},
          {"/tmp/" GITHUB "/x.js", "/tmp/[token]/x.js"});
}

static void obeys_rules(void **state)
{
    (void)state;
    struct redactor *redactor = redactor_new();
    struct error error = {0};
    static const char *const paths[] = {"*path", "url"};
    const struct redact_rule_config rules[] = {
        {.name = "user",
         .regex = "/users/\\d+",
         .replacement = "/users/{id}",
         .labels = paths,
         .label_count = 2},
        {.name = "ticket", .regex = "\\bT-\\d+"},
        {.name = "swap", .regex = "(\\w+)/(\\w+)~", .replacement = "$2/$1"},
        {.name = "empty",
         .regex = "q*",
         .replacement = "-",
         .labels = (const char *[]){"e"},
         .label_count = 1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        assert_int_equal(redactor_add(redactor, &rules[i], &error), 0);
    const struct redact_rule_config bad = {.name = "bad", .regex = "["};
    assert_int_equal(redactor_add(redactor, &bad, &error), -EINVAL);
    assert_says(&error, "the redaction rule bad");
    check_one(redactor, REDACT_LABEL, "http.path",
              &(struct text_case){"/users/17/x/users/4", "/users/{id}/x/users/{id}"});
    check_one(redactor, REDACT_LABEL, "other", &(struct text_case){"/users/17", NULL});
    check_one(redactor, REDACT_NAME, NULL, &(struct text_case){"/users/17", NULL});
    check_one(redactor, REDACT_NAME, NULL, &(struct text_case){"fix_T-1 T-22", "fix_T-1 [ticket]"});
    check_one(redactor, REDACT_LABEL, "x", &(struct text_case){"a/b~ c", "b/a c"});
    /* Rules first, then detectors, on what the rules left. */
    check_one(redactor, REDACT_LABEL, "url",
              &(struct text_case){"/users/1?m=a@b.com", "/users/{id}?m=[email]"});
    check_one(redactor, REDACT_LABEL, "e", &(struct text_case){"aqqé", "-a--é-"});
    redactor_free(redactor);
}

static void counts(void **state)
{
    (void)state;
    struct redactor *redactor = redactor_new();
    struct error error = {0};
    const struct redact_rule_config rule = {.name = "vin", .regex = "VIN\\d"};
    assert_int_equal(redactor_add(redactor, &rule, &error), 0);
    redactor_enable(redactor, DETECT_CARD, false);
    redactor_except(redactor, DETECT_EMAIL, "owner*");
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "__address__", "10.0.0.1:80");
    labels_set(&labels, "a", "VIN1 VIN2 x@y.org z@y.org");
    labels_set(&labels, "b", "4111111111111111");
    labels_set(&labels, "owner_mail", "x@y.org");
    labels_set(&labels, "peer", "10.0.0.1");
    assert_int_equal(redactor_labels(redactor, &labels), 2);
    _cleanup_buffer_ struct buffer out = {0};
    labels_write(&out, &labels);
    assert_buffer(&out, "{__address__=\"10.0.0.1:80\",a=\"[vin] [vin] [email] [email]\","
                        "b=\"4111111111111111\",owner_mail=\"x@y.org\",peer=\"[ip]\"}");
    out.length = 0;
    redactor_write_metrics(redactor, "redactions", &out);
    buffer_text(&out);
    assert_non_null(strstr(out.data, "# TYPE redactions counter\nredactions{rule=\"vin\"} 2\n"));
    assert_non_null(strstr(out.data, "\nredactions{detector=\"email\"} 2\n"));
    assert_non_null(strstr(out.data, "\nredactions{detector=\"card\"} 0\n"));
    assert_int_equal(redactor_total(redactor), 5);
    redactor_free(redactor);
}

/* A rule that would take for ever takes the whole text, and one that removes all, the label. */
static void fails_safe(void **state)
{
    (void)state;
    struct redactor *redactor = redactor_new();
    struct error error = {0};
    const struct redact_rule_config slow = {.name = "slow", .regex = "(a|aa)+(a|aa)+\\1{9}c"};
    const struct redact_rule_config all = {.name = "all", .regex = "gone", .replacement = ""};
    assert_int_equal(redactor_add(redactor, &slow, &error), 0);
    assert_int_equal(redactor_add(redactor, &all, &error), 0);
    check_one(redactor, REDACT_LABEL, "x",
              &(struct text_case){"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab c",
                                  "[slow]"});
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "a", "gone");
    labels_set(&labels, "b", "gone gone");
    labels_set(&labels, "c", "x");
    assert_int_equal(redactor_labels(redactor, &labels), 2);
    assert_null(labels_get(&labels, "a"));
    assert_string_equal(labels_get(&labels, "b"), " ");
    assert_string_equal(labels_get(&labels, "c"), "x");
    redactor_free(redactor);
}

/* Each detector's worst: a megabyte in which every position could be a start. Quadratic time would
 * be some 10^12 steps, which the test's time limit notices. */
static void takes_linear_time(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "a",
        "eyJ",
        "eyJ-",
        "eyJabcdefgh.",
        "/",
        "a/",
        "-",
        "--a",
        "@",
        "a@",
        "a@a.",
        "://",
        "a://:",
        "1",
        "1-",
        "1.",
        "1:",
        "4111 ",
        "::",
        "f:",
        "=",
        "token=",
        "--token ",
        "bearer ",
        "Basic ",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY",
        "aB3",
        "aB3/",
        "ghp_",
        "AKIA",
        " ",
        "\xc3",
        "aB3-4f/",
        "password:password:",
        "%40",
        "a%40",
        "a%40b.",
        "?code=",
        "&sig=a1",
        "sk-",
        "SK0",
        "hc-ping.com/",
        "api.telegram.org/bot/",
    };
    struct redactor *redactor = redactor_new();
    for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++) {
        _cleanup_buffer_ struct buffer text = {0};
        _cleanup_buffer_ struct buffer out = {0};
        while (text.length < 1 << 20)
            buffer_add_text(&text, pieces[i]);
        redactor_text(redactor, REDACT_COMMAND, "x", text.data, text.length, &out);
    }
    redactor_free(redactor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_addresses),
        cmocka_unit_test(finds_tokens),
        cmocka_unit_test(finds_random_texts),
        cmocka_unit_test(finds_assignments),
        cmocka_unit_test(finds_cards),
        cmocka_unit_test(finds_ip_addresses),
        cmocka_unit_test(leaves_names_alone),
        cmocka_unit_test(obeys_rules),
        cmocka_unit_test(counts),
        cmocka_unit_test(fails_safe),
        cmocka_unit_test(takes_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
