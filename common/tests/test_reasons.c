/* The table of reasons: what each row must hold, and the way from a text to a reason and back. */
#include "common/api/reasons.h"

#include <ctype.h>
#include <string.h>

#include "common/tests/suite.h"

#define MAX_MEANING_WORDS 25
#define MAX_REMEDY_WORDS 30
#define ALL_KINDS                                                                                  \
    (OF_TASK | OF_PROPLET | OF_JOB | OF_FEDERATED | OF_ROUND | OF_MACHINE | OF_ENROLLMENT)

static size_t count_words(const char *text)
{
    size_t words = *text != '\0';

    for (; *text; text++)
        words += *text == ' ';
    return words;
}

TEST_TIMES(row_has_a_camel_case_text_of_its_own_kinds_and_a_short_meaning, REASON_OTHER)
{
    const struct reason_row *row = &REASON_TABLE[_i];
    enum reason reason = (enum reason)_i;

    if (reason == REASON_NONE) {
        ck_assert_ptr_null(row->text);
        return;
    }
    ck_assert(isupper((unsigned char)row->text[0]));
    for (const char *c = row->text; *c; c++)
        ck_assert(isalnum((unsigned char)*c));
    ck_assert_int_eq(reason_of(row->text), reason); /* no other row has the text */
    ck_assert_str_eq(reason_text(reason), row->text);
    ck_assert_str_eq(reason_word(reason, "Word"), row->text);
    ck_assert(row->kinds && !(row->kinds & ~(unsigned)ALL_KINDS));
    ck_assert_uint_ge(count_words(row->meaning), 2);
    ck_assert_uint_le(count_words(row->meaning), MAX_MEANING_WORDS);
    ck_assert_uint_ge(count_words(row->remedy), 1);
    ck_assert_uint_le(count_words(row->remedy), MAX_REMEDY_WORDS);
    ck_assert_str_eq(reason_message(reason, false, ""), row->meaning);
    ck_assert_str_eq(reason_message(reason, false, "said"), "said");
    ck_assert_str_eq(reason_message(reason, true, ""), "");
}

TEST(text_that_no_row_has_stays_a_word_of_the_cluster)
{
    ck_assert_int_eq(reason_of(NULL), REASON_NONE);
    ck_assert_int_eq(reason_of(""), REASON_NONE);
    ck_assert_int_eq(reason_of("ImageInspectError"), REASON_OTHER);
    ck_assert_int_eq(reason_of("suspended"), REASON_OTHER);
    ck_assert_str_eq(reason_word(REASON_OTHER, "Evicted"), "Evicted");
}
