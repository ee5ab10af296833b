#include "controller/shared/put_back.h"

#include <stdio.h>

/* A key of the refresh budget; a uid has 36 characters. */
#define KEY_LEN 64
static void key_of(const char *uid, char ret[static KEY_LEN])
{
    snprintf(ret, KEY_LEN, "pods/%s", uid);
}

int64_t put_back_at_ms(struct refresh_budget *budget, double qps, const char *uid, int64_t now_ms)
{
    const struct refresh_limits limits = { .interval_ms = PUT_BACK_MS, .qps = qps };
    char key[KEY_LEN];

    key_of(uid, key);
    return refresh_budget_reserve(budget, key, false, &limits, now_ms);
}

void put_back_done(struct refresh_budget *budget, const char *uid)
{
    char key[KEY_LEN];

    key_of(uid, key);
    refresh_budget_release(budget, key);
}
