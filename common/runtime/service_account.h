/* The tokens of one ServiceAccount (TokenRequest): kept, renewed early, renewed at once when one is
 * refused. */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"

/*
 * A request that needs a token asks for it (token_plan.h says when), on its own thread and with no
 * lock held, so an idle process asks for none. If several need one at the same time, one asks. A
 * refused or missing token is ERROR_UNAVAILABLE with retry_after_ms, so that no work is taken for
 * refused for good because of it. Tokens stand in no log line and no message.
 */
#define SERVICE_ACCOUNT_TOKEN_S 3600
struct service_account;
/* client: of an identity that may create serviceaccounts/token of account; borrowed, like clock. */
struct service_account *service_account_create(struct kube_client *client,
                                               const struct kube_name *account,
                                               const struct clock *clock);
void service_account_destroy(struct service_account *self); /* its tokens are not in use any more */
/* For kube_config_create_as. */
struct kube_token_source service_account_tokens(struct service_account *self);
