// SPDX-License-Identifier: Apache-2.0
// Tokens: their file, and who may do what with one.

#include "http/access/tokens.h"

#include <pthread.h>
#include <sys/stat.h>

#include "base/file.h"
#include "http/access/authorize.h"
#include "unit.h"

#define FILE_NAME "tokens"

static void create(const char *name, unsigned roles, const char *tenant, int64_t expires,
                   char text[TOKEN_TEXT_BYTES], struct token *token)
{
    struct error error = {0};
    if (token_create(FILE_NAME, name, roles, tenant, expires, text, token, &error) < 0)
        fail_msg("%s", error.text);
}

/* What comes after "assay_ID_"; it may have such a line in it, too. */
static const char *secret_of(const char *token)
{
    return strchr(token + strlen("assay_"), '_') + 1;
}

static void test_life_of_a_token(void **state)
{
    (void)state;
    char agent[TOKEN_TEXT_BYTES], reader[TOKEN_TEXT_BYTES], old[TOKEN_TEXT_BYTES];
    struct token token, got;
    struct error error = {0};
    create("agent of rack 7", HTTP_ROLE_INGEST, NULL, 0, agent, &token);
    create("grafana", HTTP_ROLE_READ | HTTP_ROLE_ADMIN, "team-b", 0, reader, &token);
    create("old", HTTP_ROLE_READ, NULL, 1000, old, &token);
    struct stat file;
    assert_int_equal(stat(FILE_NAME, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    /* The file has no token in it. */
    struct buffer content = {0};
    assert_int_equal(file_read(FILE_NAME, 1 << 20, &content, &error), 0);
    assert_null(strstr(buffer_text(&content), secret_of(agent)));
    assert_null(strstr(buffer_text(&content), secret_of(reader)));
    buffer_release(&content);

    struct tokens *tokens;
    assert_int_equal(tokens_open(FILE_NAME, &tokens, &error), 0);
    assert_int_equal(tokens_check(tokens, agent, strlen(agent), 2000, &got), 0);
    assert_string_equal(got.name, "agent of rack 7");
    assert_string_equal(got.tenant, "anonymous");
    assert_int_equal(got.roles, HTTP_ROLE_INGEST);
    assert_int_equal(tokens_check(tokens, reader, strlen(reader), 2000, &got), 0);
    assert_string_equal(got.tenant, "team-b");
    assert_int_equal(tokens_check(tokens, old, strlen(old), 999, &got), 0);
    assert_int_equal(tokens_check(tokens, old, strlen(old), 1000, &got), -ETIME);

    /* Revoked tokens end when the file is looked at again, which is in the next second. */
    assert_int_equal(token_revoke(FILE_NAME, "agent of rack 7", &error), 0);
    assert_int_equal(tokens_check(tokens, agent, strlen(agent), 3000, &got), -EACCES);
    assert_int_equal(tokens_check(tokens, reader, strlen(reader), 3000, &got), 0);
    assert_int_equal(token_revoke(FILE_NAME, got.id, &error), 0);
    assert_int_equal(tokens_check(tokens, reader, strlen(reader), 3001, &got), -EACCES);
    assert_int_equal(token_revoke(FILE_NAME, "grafana", &error), -ENOENT);
    assert_says(&error, "no token with the id or name grafana");
    /* A file that has been spoilt changes nothing. */
    assert_int_equal(file_write_atomic(FILE_NAME, "rubbish\n", 8, &error), 0);
    assert_int_equal(tokens_check(tokens, old, strlen(old), 900, &got), 0);
    assert_int_equal(tokens_reload(tokens, &error), -EBADMSG);
    assert_says(&error, "invalid token in line 1");
    tokens_free(tokens);
}

static void test_wrong_tokens(void **state)
{
    (void)state;
    char text[TOKEN_TEXT_BYTES];
    struct token token, got;
    struct error error = {0};
    struct tokens *tokens;
    create("a", HTTP_ROLE_READ, NULL, 0, text, &token);
    assert_int_equal(tokens_open(FILE_NAME, &tokens, &error), 0);
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        assert_int_equal(tokens_check(tokens, text, i, 1, &got), -EACCES);
        for (int bit = 0; bit < 8; bit++) {
            char changed[TOKEN_TEXT_BYTES];
            memcpy(changed, text, sizeof(changed));
            changed[i] ^= (char)(1 << bit);
            assert_int_equal(tokens_check(tokens, changed, length, 1, &got), -EACCES);
        }
    }
    char longer[TOKEN_TEXT_BYTES + 40];
    snprintf(longer, sizeof(longer), "%sx", text);
    assert_int_equal(tokens_check(tokens, longer, length + 1, 1, &got), -EACCES);
    snprintf(longer, sizeof(longer), " %s \n", text);
    assert_int_equal(tokens_check(tokens, longer, strlen(longer), 1, &got), 0);
    memset(longer, 'a', sizeof(longer));
    assert_int_equal(tokens_check(tokens, longer, sizeof(longer), 1, &got), -EACCES);
    tokens_free(tokens);
}

static void test_headers(void **state)
{
    (void)state;
    char text[TOKEN_TEXT_BYTES], header[256], password[64];
    struct token token, got;
    struct error error = {0};
    struct tokens *tokens;
    create("a", HTTP_ROLE_READ, NULL, 0, text, &token);
    assert_int_equal(tokens_open(FILE_NAME, &tokens, &error), 0);
    snprintf(header, sizeof(header), "bearer  %s", text);
    assert_int_equal(authorize_token(tokens, header, 1, &got), 0);
    assert_int_equal(authorize_token(tokens, text, 1, &got), -EACCES);
    assert_int_equal(authorize_token(tokens, "Bearer", 1, &got), -EACCES);
    assert_int_equal(authorize_token(tokens, "Digest x", 1, &got), -EACCES);
    tokens_free(tokens);

    assert_int_equal(authorize_basic("dXNlcjpwYXNz", password, sizeof(password)), 4);
    assert_string_equal(password, "pass");
    assert_int_equal(authorize_basic("dTpwOnE=", password, sizeof(password)), 3);
    assert_string_equal(password, "p:q");
    assert_int_equal(authorize_basic("Og==", password, sizeof(password)), 0);
    assert_int_equal(authorize_basic("dXNlcg==", password, sizeof(password)), -1);
    assert_int_equal(authorize_basic("dXNlcjpwYXNz=x", password, sizeof(password)), -1);
    assert_int_equal(authorize_basic("d XNl", password, sizeof(password)), -1);
    assert_int_equal(authorize_basic("dXNlcjpwYXNz", password, 4), -1);
    assert_int_equal(authorize_basic("OgA=", password, sizeof(password)), -1);
}

static void test_bad_files(void **state)
{
    (void)state;
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    static const char good[] = "# comment\n\nt0123456789\tread,ingest\tx\t1\t0\t" HASH "\tname\n";
    static const char *const bad[] = {
        "t0123456789\tread\tx\t1\t0\t" HASH "\n",
        "t0123456789\tread\tx\t1\t0\t" HASH "\tname\tmore\n",
        "x0123456789\tread\tx\t1\t0\t" HASH "\tname\n",
        "t012345678\tread\tx\t1\t0\t" HASH "\tname\n",
        "t0123456789\twrite\tx\t1\t0\t" HASH "\tname\n",
        "t0123456789\t\tx\t1\t0\t" HASH "\tname\n",
        "t0123456789\tread\tx y\t1\t0\t" HASH "\tname\n",
        "t0123456789\tread\tx\ta\t0\t" HASH "\tname\n",
        "t0123456789\tread\tx\t1\t0\t" HASH "00\tname\n",
        "t0123456789\tread\tx\t1\t0\t" HASH "\t\n",
        "t0123456789\tread\tx\t1\t0\t" HASH "\ta\x01"
        "b\n",
        "t0123456789\tread\tx\t1\t0\t" HASH "\ta\nt0123456789\tread\tx\t1\t0\t" HASH "\tb\n",
    };
    struct token_list tokens = {0};
    struct error error = {0};
    assert_int_equal(token_list_parse(good, strlen(good), "f", &tokens, &error), 0);
    assert_int_equal(tokens.count, 1);
    assert_int_equal(tokens.list[0].roles, HTTP_ROLE_READ | HTTP_ROLE_INGEST);
    assert_int_equal(tokens.list[0].hash[1], 0x23);
    token_list_release(&tokens);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(token_list_parse(bad[i], strlen(bad[i]), "f", &tokens, &error), -EBADMSG);
    for (size_t length = 12; length < sizeof(good) - 2; length++) {
        char *cut = memcpy(malloc(length), good, length);
        int r = token_list_parse(cut, length, "f", &tokens, &error);
        assert_true(r == -EBADMSG || (r == 0 && length > sizeof(good) - 6));
        token_list_release(&tokens);
        free(cut);
    }
    char text[TOKEN_TEXT_BYTES];
    struct token token;
    assert_int_equal(token_create("t", "a\tb", 1, NULL, 0, text, &token, &error), -EINVAL);
    assert_int_equal(token_create("t", "", 1, NULL, 0, text, &token, &error), -EINVAL);
    assert_int_equal(token_create("t", "a", 1, "b c", 0, text, &token, &error), -EINVAL);
    assert_int_equal(token_create("t", "a", 0, NULL, 0, text, &token, &error), -EINVAL);
    assert_int_equal(token_create("/nowhere/t", "a", 1, NULL, 0, text, &token, &error), -ENOENT);
    unsigned roles;
    assert_int_equal(token_roles_parse("read,admin", &roles, &error), 0);
    assert_int_equal(token_roles_parse("read,", &roles, &error), -EINVAL);
    assert_says(&error, "is not a role");
}

static void *create_some(void *argument)
{
    char text[TOKEN_TEXT_BYTES];
    struct token token;
    (void)argument;
    for (int i = 0; i < 20; i++)
        create("same", HTTP_ROLE_READ, NULL, 0, text, &token);
    return NULL;
}

/* Nobody's token is lost when several are made at once. */
static void test_at_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    struct token_list tokens = {0};
    struct error error = {0};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, create_some, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(token_list_read(FILE_NAME, &tokens, &error), 0);
    assert_int_equal(tokens.count, 80);
    token_list_release(&tokens);
    assert_int_equal(token_revoke(FILE_NAME, "same", &error), -EINVAL);
    assert_says(&error, "use the id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_life_of_a_token, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_wrong_tokens, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_headers, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_bad_files, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_at_once, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
