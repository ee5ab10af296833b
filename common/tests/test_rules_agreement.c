/* crds/ and the validators' tables say the same: fields, types, bounds, values, what is required.
 */
#include <regex.h>
#include <string.h>

#include "common/api/quantity.h"
#include "common/api/validate.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static const struct {
    const char *file;
    const struct field_rules *rules;
} CRDS[] = {
    { "crds/tasks.yaml", &TASK_SPEC_RULES },
    { "crds/proplets.yaml", &PROPLET_SPEC_RULES },
    { "crds/propellerjobs.yaml", &PROPELLERJOB_SPEC_RULES },
    { "crds/federatedjobs.yaml", &FEDERATEDJOB_SPEC_RULES },
    { "crds/trainingrounds.yaml", &TRAININGROUND_SPEC_RULES },
};

static bool is_text(const cJSON *item, const char *text)
{
    return str_equal(json_string(item, NULL), text);
}

static bool array_has(const cJSON *array, const char *text)
{
    json_for_each (item, array) {
        if (is_text(item, text))
            return true;
    }
    return false;
}

static bool is_int_or_string(const cJSON *schema)
{
    return json_bool(json_get(schema, "x-kubernetes-int-or-string"), false);
}

static bool type_fits(const struct field_rule *rule, const cJSON *schema)
{
    const cJSON *type = json_get(schema, "type");
    bool has_pattern = json_get(schema, "pattern") != NULL;

    switch (rule->type) {
    case RULE_STRING:
        return is_text(type, "string") && !json_get(schema, "enum");
    case RULE_BOOL:
        return is_text(type, "boolean");
    case RULE_INT:
        return is_text(type, "integer");
    case RULE_ENUM:
        return is_text(type, "string") && json_get(schema, "enum");
    case RULE_QUANTITY:
        return is_int_or_string(schema) && has_pattern;
    case RULE_AMOUNT:
        return is_int_or_string(schema) && !has_pattern;
    case RULE_OBJECT:
        return is_text(type, "object") && !json_get(schema, "additionalProperties");
    case RULE_LIST:
        return is_text(type, "array");
    case RULE_MAP:
        return json_get(schema, "additionalProperties") != NULL;
    case RULE_SCALAR: /* the schema cannot say it */
    case RULE_ANY:
        return !type && json_bool(json_get(schema, "x-kubernetes-preserve-unknown-fields"), false);
    }
    return false;
}

static void compare_number(const char *path, const char *what, int64_t rule, const cJSON *schema)
{
    int64_t value = json_int(json_get(schema, what), 0);

    ck_assert_msg(value == rule, "%s: %s is %lld in the schema, %lld in the table", path, what,
                  (long long)value, (long long)rule);
}

static void compare_bounds(const char *path, const struct field_rule *rule, const cJSON *schema)
{
    switch (rule->type) {
    case RULE_INT:
        compare_number(path, "minimum", rule->min, schema);
        compare_number(path, "maximum", rule->max, schema);
        return;
    case RULE_STRING:
        compare_number(path, "minLength", rule->min, schema);
        compare_number(path, "maxLength", rule->max, schema);
        return;
    case RULE_QUANTITY:
    case RULE_AMOUNT:
        compare_number(path, "maxLength", rule->max, schema);
        return;
    case RULE_LIST:
        compare_number(path, "minItems", rule->min, schema);
        compare_number(path, "maxItems", rule->max, schema);
        return;
    case RULE_MAP:
        compare_number(path, "maxProperties", rule->max, schema);
        return;
    default:
        return;
    }
}

static void compare_names(const char *path, const struct field_rule *rule, const cJSON *schema)
{
    const cJSON *values = json_get(schema, "enum");
    size_t count = 0;

    for (size_t i = 0; i == 0 || rule->names[i]; i++) {
        if (!rule->names[i])
            continue;
        ck_assert_msg(array_has(values, rule->names[i]), "%s: '%s'", path, rule->names[i]);
        count++;
    }
    ck_assert_msg(json_len(values) == count, "%s: the schema has other values", path);
}

/* Texts on both sides of every pattern. */
static const char *const TEXTS[] = {
    "",         "a",       "a b",    "a/b",       "a+b",      "#",       "tcp://h",  "mqtt://h:1",
    "ssl://h",  "tls://h", "tls:/h", "mqtts://h", "http://h", "TCP://h", "x tcp://", "0",
    "0s",       "30s",     "1h2m",   "1.5h",      ".5s",      "5",       "-1s",      "1x",
    "1\u00b5s", "1ms",     "1d",     "s",         ".",        "1.",      "1Ki",      "1.5Gi",
    "100m",     "1e3",     "1E-3",   "1K",        "1k",       "1 Gi",    "Ki",       "1.2.3",
};

/* What the check says to a text, where it says more than a pattern can: a time-out of nothing. */
static bool is_beyond_patterns(const char *text)
{
    return str_equal(text, "0") || str_equal(text, "0s");
}

static bool pattern_matches(const char *path, const cJSON *schema, const char *text)
{
    char *pattern = arena_strdup(arena, json_string(json_get(schema, "pattern"), ""));
    char *nul = strstr(pattern, "\\x00"); /* no text holds it, and POSIX does not know it */
    regex_t regex;

    if (nul)
        memmove(nul, nul + 4, strlen(nul + 4) + 1);
    ck_assert_msg(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) == 0, "%s: %s", path, pattern);
    bool matches = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return matches;
}

static void compare_pattern(const char *path, const struct field_rule *rule, const cJSON *schema)
{
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        bool taken = !rule->check(TEXTS[i]);
        if (!is_beyond_patterns(TEXTS[i]))
            ck_assert_msg(pattern_matches(path, schema, TEXTS[i]) == taken,
                          "%s: '%s' fits one of pattern and check", path, TEXTS[i]);
    }
}

static void compare_quantity(const char *path, const cJSON *schema)
{
    struct quantity quantity;

    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        bool is_one = quantity_parse(TEXTS[i], &quantity) && !quantity.negative;
        ck_assert_msg(pattern_matches(path, schema, TEXTS[i]) == is_one,
                      "%s: '%s' is a quantity in one of them", path, TEXTS[i]);
    }
}

static void compare_keys(const char *path, const struct field_rule *rule, const cJSON *schema)
{
    const cJSON *keys = json_get(schema, "x-kubernetes-list-map-keys");
    bool is_set = is_text(json_get(schema, "x-kubernetes-list-type"), "set");

    if (!rule->key)
        ck_assert_msg(!keys && !is_set, "%s: keys only in the schema", path);
    else if (*rule->key)
        ck_assert_msg(json_len(keys) == 1 && array_has(keys, rule->key) &&
                          is_text(json_get(schema, "x-kubernetes-list-type"), "map"),
                      "%s: other keys", path);
    else
        ck_assert_msg(is_set, "%s: no set in the schema", path);
}

static void compare_members(const char *path, const struct field_rules *rules, const cJSON *schema);

static void compare(const char *path, const struct field_rule *rule, const cJSON *schema)
{
    ck_assert_msg(schema != NULL, "%s: not in the schema", path);
    ck_assert_msg(type_fits(rule, schema), "%s: another type", path);
    compare_bounds(path, rule, schema);
    if (rule->type == RULE_ENUM)
        compare_names(path, rule, schema);
    if (rule->type == RULE_OBJECT)
        compare_members(path, rule->members, schema);
    if (rule->type == RULE_LIST) {
        compare_keys(path, rule, schema);
        compare(arena_printf(arena, "%s[]", path), rule->items, json_get(schema, "items"));
    }
    if (rule->type == RULE_MAP)
        compare(arena_printf(arena, "%s[]", path), rule->items,
                json_get(schema, "additionalProperties"));
    if (rule->type == RULE_STRING && rule->check)
        compare_pattern(path, rule, schema);
    else if (rule->type == RULE_STRING)
        ck_assert_msg(!json_get(schema, "pattern") || rule->hidden,
                      "%s: a pattern only in the schema", path);
    if (rule->type == RULE_QUANTITY)
        compare_quantity(path, schema);
}

static void compare_members(const char *path, const struct field_rules *rules, const cJSON *schema)
{
    const cJSON *properties = json_get(schema, "properties");
    size_t required = 0;

    for (size_t i = 0; i < rules->len; i++) {
        const struct field_rule *rule = &rules->fields[i];
        const char *inner = arena_printf(arena, "%s.%s", path, rule->name);

        compare(inner, rule, json_get(properties, rule->name));
        ck_assert_msg(array_has(json_get(schema, "required"), rule->name) == rule->required,
                      "%s: required in one of them", inner);
        required += rule->required;
    }
    ck_assert_msg(json_len(properties) == rules->len, "%s: fields without a rule", path);
    ck_assert_msg(json_len(json_get(schema, "required")) == required, "%s: required", path);
}

START_TEST(the_table_is_the_schema)
{
    const cJSON *versions =
        json_path(parsed_yaml_file(arena, CRDS[_i].file), "spec", "versions", NULL);
    const cJSON *spec =
        json_path(json_first(versions), "schema", "openAPIV3Schema", "properties", "spec", NULL);

    ck_assert_ptr_nonnull(spec);
    ck_assert(array_has(
        json_path(json_first(versions), "schema", "openAPIV3Schema", "required", NULL), "spec"));
    compare_members("spec", CRDS[_i].rules, spec);
}
END_TEST

static const struct field_rule *rule_of(const struct field_rules *rules, const char *name)
{
    for (size_t i = 0; i < rules->len; i++) {
        if (str_equal(rules->fields[i].name, name))
            return &rules->fields[i];
    }
    ck_abort_msg("no rule for '%s'", name);
}

START_TEST(secrets_and_modules_are_never_shown)
{
    const struct field_rules *connection =
        rule_of(&PROPLET_SPEC_RULES, "connectionConfig")->members;

    ck_assert(rule_of(connection, "clientKey")->hidden);
    ck_assert(rule_of(&TASK_SPEC_RULES, "env")->items->hidden);
    ck_assert(rule_of(&TASK_SPEC_RULES, "file")->hidden);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rules_agreement");
    TCase *tc = tcase_create("rules_agreement");

    tcase_add_checked_fixture(tc, arena_set_up, arena_tear_down);
    tcase_add_loop_test(tc, the_table_is_the_schema, 0, (int)ARRAY_LEN(CRDS));
    tcase_add_test(tc, secrets_and_modules_are_never_shown);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
