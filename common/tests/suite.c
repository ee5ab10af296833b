#include "common/tests/suite.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_ENTRIES 256 /* of one file */
/* Of a test, against hangs only: nothing is timed. unit.sh, whose limit of a program is longer, allows 60 times as
 * much, because the machine may be busy. */
#define TIME_LIMIT_S 15

static struct suite_entry entries[MAX_ENTRIES];
static size_t entry_count;

void suite_add(struct suite_entry entry)
{
    if (entry_count == MAX_ENTRIES || (entry.test && entry.times < 1))
        abort(); /* too many tests, or one that would never run */
    entries[entry_count++] = entry;
}

static int by_line(const void *a, const void *b)
{
    return ((const struct suite_entry *)a)->line - ((const struct suite_entry *)b)->line;
}

static TCase *group_create(Suite *suite, const struct suite_entry *entry)
{
    TCase *group = tcase_create(entry->test ? "all" : entry->group);

    tcase_set_timeout(group, TIME_LIMIT_S);
    tcase_add_unchecked_fixture(group, entry->once[0], entry->once[1]);
    tcase_add_checked_fixture(group, entry->each[0], entry->each[1]);
    suite_add_tcase(suite, group);
    return group;
}

int suite_run_tests(void)
{
    Suite *suite = suite_create(program_invocation_short_name);
    TCase *group = NULL;

    qsort(entries, entry_count, sizeof(entries[0]), by_line);
    for (size_t i = 0; i < entry_count; i++) {
        const struct suite_entry *entry = &entries[i];

        if (!group || !entry->test)
            group = group_create(suite, entry);
        if (entry->test)
            tcase_add_loop_exit_test(group, entry->test, entry->exit_status, 0, entry->times);
    }
    return suite_run(suite);
}

int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_NORMAL);

    int failed = srunner_ntests_failed(runner);

    srunner_free(runner);
    return failed ? 1 : 0;
}
