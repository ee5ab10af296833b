#include "common/api/reasons.h"

#include "common/base/str.h"

const struct reason_row REASON_TABLE[REASON_COUNT] = {
#define REASON(name, text, kinds, severity, meaning, remedy)                                       \
    [REASON_##name] = { text, kinds, SEVERITY_##severity, meaning, remedy },
#include "common/api/reasons.def"
};

const char *reason_text(enum reason reason)
{
    return REASON_TABLE[reason].text;
}

const char *reason_word(enum reason reason, const char *word)
{
    return reason == REASON_OTHER ? word : reason_text(reason);
}

const char *reason_message(enum reason reason, bool is_true, const char *message)
{
    const char *meaning = is_true ? NULL : REASON_TABLE[reason].meaning;

    return str_is_empty(message) && meaning ? meaning : message;
}

enum reason reason_of(const char *text)
{
    if (str_is_empty(text))
        return REASON_NONE;
    for (enum reason reason = REASON_NONE + 1; reason < REASON_OTHER; reason++) {
        if (str_equal(REASON_TABLE[reason].text, text))
            return reason;
    }
    return REASON_OTHER;
}
