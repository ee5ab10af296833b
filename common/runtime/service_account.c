#include "common/runtime/service_account.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/backoff.h"
#include "common/runtime/token_plan.h"

struct service_account {
    struct kube_client *client;
    struct kube_name name;
    const struct clock *clock;

    pthread_mutex_t lock; /* leaf: guards what follows */
    pthread_cond_t changed;
    struct token_state state;
    char *token;                                       /* NULL: none */
    bool is_busy;                                      /* somebody is asking for one */
    char why[sizeof(((struct error *)NULL)->message)]; /* the last request failed so; "": it did not
                                                        */
};

struct service_account *service_account_create(struct kube_client *client,
                                               const struct kube_name *account,
                                               const struct clock *clock)
{
    struct service_account *self = xcalloc(1, sizeof(*self));

    self->client = client;
    self->name = *account;
    self->clock = clock;
    (void)pthread_mutex_init(&self->lock, NULL);
    cond_init(&self->changed);
    return self;
}

void service_account_destroy(struct service_account *self)
{
    if (!self)
        return;
    free_secret(self->token);
    (void)pthread_cond_destroy(&self->changed);
    (void)pthread_mutex_destroy(&self->lock);
    free(self);
}

static void tell(const struct service_account *self, bool was_failing, int r,
                 const struct error *err)
{
    if (r < 0)
        log_write(was_failing ? LOG_DEBUG : LOG_WARN, "token not renewed, trying again", "identity",
                  self->name.name, "error", ERROR_TEXT(err), NULL);
    else
        log_write(was_failing ? LOG_INFO : LOG_DEBUG, "token renewed", "identity", self->name.name,
                  NULL);
}

/* With the lock, which is not held during the request. CANCELED is no failure: writing is not
 * allowed now, or the process stops. */
static int renew(struct service_account *self, struct error *err)
{
    char *token = NULL;
    uint32_t lifetime_s = 0;

    self->is_busy = true;
    pthread_mutex_unlock(&self->lock);
    int64_t asked_ms = clock_boot_ms(self->clock);
    int r = kube_request_token(self->client, &self->name, SERVICE_ACCOUNT_TOKEN_S, &token,
                               &lifetime_s, err);
    pthread_mutex_lock(&self->lock);

    bool was_failing = self->why[0];
    if (r == 0) {
        uint64_t lifetime_ms = (uint64_t)lifetime_s * 1000;
        free_secret(self->token);
        self->token = token;
        self->why[0] = '\0';
        token_received(&self->state, asked_ms,
                       lifetime_ms < UINT32_MAX ? (uint32_t)lifetime_ms : UINT32_MAX,
                       jitter_ms(100, TOKEN_RENEW_LOW_PERCENT, TOKEN_RENEW_HIGH_PERCENT));
    } else if (r != -ERROR_CANCELED) {
        (void)str_copy(self->why, sizeof(self->why), err->message);
        token_failed(&self->state, clock_boot_ms(self->clock), err->retry_after_ms,
                     jitter_ms(100, 50, 100));
    }
    self->is_busy = false;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    if (r != -ERROR_CANCELED)
        tell(self, was_failing, r, err);
    pthread_mutex_lock(&self->lock);
    return r;
}

static int too_early(const struct service_account *self, int64_t now_ms, struct error *err)
{
    int r = error_set(err, ERROR_UNAVAILABLE, "no token of '%s': %s", self->name.name,
                      self->why[0] ? self->why : "the API server refused the last one");

    if (err)
        err->retry_after_ms = (uint32_t)(self->state.not_before_ms - now_ms);
    return r;
}

/* With the lock. 1: there is a token; 0: look again; < 0. */
static int step(struct service_account *self, struct error *err)
{
    struct error cause;
    int64_t now_ms = clock_boot_ms(self->clock);
    enum token_action action = token_decide(&self->state, now_ms);

    if (action == TOKEN_USE || (action == TOKEN_USE_AND_RENEW && self->is_busy))
        return 1;
    if (action == TOKEN_WAIT)
        return too_early(self, now_ms, err);
    if (self->is_busy) {
        pthread_cond_wait(&self->changed, &self->lock); /* for as long as a request may take */
        return 0;
    }

    int r = renew(self, &cause);
    if (r == -ERROR_CANCELED && action == TOKEN_RENEW) {
        if (err)
            *err = cause;
        return r;
    }
    return action == TOKEN_USE_AND_RENEW && self->token ? 1 : 0;
}

static int get_token(void *ctx, char **ret, struct error *err)
{
    struct service_account *self = ctx;
    int r;

    pthread_mutex_lock(&self->lock);
    do {
        r = step(self, err);
    } while (r == 0);
    if (r > 0)
        *ret = xstrdup(self->token);
    pthread_mutex_unlock(&self->lock);
    return r < 0 ? r : 0;
}

static void refuse_token(void *ctx, const char *token)
{
    struct service_account *self = ctx;

    pthread_mutex_lock(&self->lock);
    bool is_present = str_equal(self->token, token); /* else somebody has renewed it already */
    if (is_present) {
        free_secret(self->token);
        self->token = NULL;
        token_refused(&self->state, clock_boot_ms(self->clock), jitter_ms(100, 50, 100));
    }
    pthread_mutex_unlock(&self->lock);
    if (is_present)
        log_warn("token refused, asking for another", "identity", self->name.name, NULL);
}

struct kube_token_source service_account_tokens(struct service_account *self)
{
    return (struct kube_token_source){ .ctx = self, .get = get_token, .refuse = refuse_token };
}
