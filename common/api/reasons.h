/* The reasons of statuses and conditions: an enum, and the table of their texts (reasons.def). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum reason {
    REASON_NONE, /* no reason; the text is NULL */
#define REASON(name, text, kinds, severity, meaning, remedy) REASON_##name,
#include "common/api/reasons.def"
    REASON_OTHER, /* a word of the cluster that the table does not hold; its text is kept beside it */
    REASON_COUNT,
};

/* The kinds whose objects have a reason; a set. */
enum reason_kinds {
    OF_TASK = 1,
    OF_PROPLET = 2,
    OF_JOB = 4,
    OF_FEDERATED = 8,
    OF_ROUND = 16,
    OF_MACHINE = 32,
    OF_ENROLLMENT = 64,
};

enum reason_severity {
    SEVERITY_NORMAL,  /* time, or the controller, helps */
    SEVERITY_WARNING, /* a person must act */
};

/* One row of the table. */
struct reason_row {
    const char *text; /* as a status, a condition, or an Event holds it */
    unsigned kinds;   /* enum reason_kinds */
    enum reason_severity severity;
    const char *meaning;
    const char *remedy; /* the action of the user */
};
extern const struct reason_row REASON_TABLE[REASON_COUNT];

/* Returns the text of a reason; NULL for REASON_NONE and REASON_OTHER. */
const char *reason_text(enum reason reason);
/* Returns the text; `word` for REASON_OTHER. */
const char *reason_word(enum reason reason, const char *word);
/* Returns the message of a condition with this reason. A condition that is not True always has one: without a message of
 * its own it has the meaning of the reason. */
const char *reason_message(enum reason reason, bool is_true, const char *message);
/* Returns the reason with this text: REASON_NONE for NULL and "", REASON_OTHER for a text that is not in the table.
 * Decisions compare what this returns, never texts. */
enum reason reason_of(const char *text);
