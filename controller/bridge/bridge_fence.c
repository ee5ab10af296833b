#include "controller/bridge/bridge_fence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"

void fence_init(struct fence *fence)
{
    *fence = (struct fence){ 0 };
    uuid_random(fence->nonce);
}

bool fence_passed(const struct fence *fence, int64_t since_ms)
{
    return fence->returned_ms > since_ms;
}

bool fence_is_due(const struct fence *fence, int64_t now_ms)
{
    return !fence->sent_ms || now_ms - fence->sent_ms >= FENCE_TIMEOUT_MS;
}

bool fence_is_overdue(const struct fence *fence, int64_t now_ms)
{
    return fence->overdue || (fence->sent_ms && fence_is_due(fence, now_ms));
}

bool fence_send(struct fence *fence, int64_t now_ms, char ret_text[static FENCE_TEXT_LEN])
{
    if (!fence_is_due(fence, now_ms))
        return false;

    if (fence->sent_ms) {
        fence->lost++;
        fence->overdue = true;
    }
    fence->sent_ms = now_ms;
    snprintf(ret_text, FENCE_TEXT_LEN, "%s %" PRId64, fence->nonce, now_ms);
    return true;
}

void fence_forget(struct fence *fence)
{
    fence->lost += fence->sent_ms != 0;
    fence->sent_ms = 0;
}

bool fence_returned(struct fence *fence, const char *text, size_t len)
{
    size_t nonce_len = strlen(fence->nonce);
    char copy[FENCE_TEXT_LEN];
    int64_t sent_ms;

    if (len >= sizeof(copy) || len <= nonce_len || memcmp(text, fence->nonce, nonce_len) != 0)
        return false;

    memcpy(copy, text, len);
    copy[len] = '\0';
    if (!str_to_int64(copy + nonce_len + 1, &sent_ms) || sent_ms < fence->returned_ms)
        return false;
    /* Another one may have been sent in the millisecond in which one came back. */
    if (sent_ms == fence->returned_ms && sent_ms != fence->sent_ms)
        return false;

    fence->returned_ms = sent_ms;
    fence->overdue = false;
    if (fence->sent_ms <= sent_ms)
        fence->sent_ms = 0;
    return true;
}
