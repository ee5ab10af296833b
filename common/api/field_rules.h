/* Tables that say which values the fields of a spec may have: what the CRD schemas say, and what
 * they cannot. */
#pragma once

#include "common/schema/field_errors.h"

enum rule_type {
    RULE_STRING,   /* min..max characters; check */
    RULE_BOOL,     /* */
    RULE_INT,      /* min..max */
    RULE_ENUM,     /* one of names */
    RULE_QUANTITY, /* string or integer, not negative; max characters */
    RULE_AMOUNT,   /* string or integer, of any meaning; max characters */
    RULE_SCALAR,   /* string or number */
    RULE_OBJECT,   /* members */
    RULE_LIST,     /* min..max items, each as the rule items says; key */
    RULE_MAP,      /* at most max members, each value as items says */
    RULE_ANY,      /* any JSON */
};

/* What is wrong with a text, as "must be …"; NULL: nothing. */
typedef const char *rule_check_fn(const char *text);

struct field_rules;
struct field_rule {
    const char *name;
    enum rule_type type;
    bool required; /* null counts as absent */
    bool hidden;   /* a secret, or too long to read: no error repeats it */
    int64_t min;
    int64_t max;              /* 0: no limit */
    const char *const *names; /* as in codec.h: index 0 may be NULL */
    rule_check_fn *check;
    const struct field_rules *members;
    const struct field_rule *items;
    const char *key; /* RULE_LIST: the member that no two items share; "": the strings themselves */
};
struct field_rules {
    const struct field_rule *fields;
    size_t len;
};
#define FIELD_RULES(table)                                                                         \
    {                                                                                              \
        .fields = (table), .len = ARRAY_LEN(table)                                                 \
    }

/* Adds an error for each value below path that breaks its rule. Members without a rule are left
 * alone: the API server drops them. */
void field_rules_check(struct arena *arena, const struct field_rules *rules, const char *path,
                       const cJSON *object, struct field_errors *errors);

/* Checks that several tables share. */
rule_check_fn rule_duration;
