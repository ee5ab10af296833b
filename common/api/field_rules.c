#include "common/api/field_rules.h"

#include "common/api/quantity.h"
#include "common/base/buf.h"
#include "common/base/map.h"
#include "common/base/str.h"

#define MAX_DETAIL 1024
/* Longer paths are cut; names of members come from outside. */
#define MAX_PATH 512

/* Where the checker stands: a chain on the stack, written out only for an error. */
struct place {
    const struct place *parent;
    const char *name; /* NULL: element `index` of the parent */
    size_t index;
};

struct checker {
    struct arena *arena;
    struct field_errors *errors;
};

static void check_value(const struct checker *checker, const struct field_rule *rule,
                        const struct place *place, const cJSON *value);
static void check_members(const struct checker *checker, const struct field_rules *rules,
                          const struct place *place, const cJSON *object);

const char *rule_duration(const char *text)
{
    int64_t ms;

    if ((*text == '.' || (*text >= '0' && *text <= '9')) && str_to_duration_ms(text, &ms))
        return NULL;
    return "must be a duration, for example 1m30s";
}

static bool write_path(const struct place *place, struct buf *path)
{
    if (place->parent && !write_path(place->parent, path))
        return false;
    if (!place->name)
        return buf_printf(path, "[%zu]", place->index);
    return buf_printf(path, "%s%s", place->parent ? "." : "", place->name);
}

static const char *path_of(const struct checker *checker, const struct place *place)
{
    CLEANUP(buf_releasep) struct buf path = BUF_INIT(MAX_PATH);

    if (field_errors_count(checker->errors) >= FIELD_ERRORS_MAX)
        return ""; /* this one is only counted */

    bool whole = write_path(place, &path);
    return arena_printf(checker->arena, "%s%s", buf_string(&path), whole ? "" : "...");
}

static void refuse_type(const struct checker *checker, const struct place *place,
                        const cJSON *value, const char *must_be)
{
    field_error(checker->errors, FIELD_ERROR_TYPE, path_of(checker, place), value, "must be %s",
                must_be);
}

static void refuse_value(const struct checker *checker, const struct place *place,
                         const cJSON *value, const char *problem)
{
    field_error(checker->errors, FIELD_ERROR_INVALID, path_of(checker, place), value, "%s",
                problem);
}

static void refuse_count(const struct checker *checker, const struct place *place, int64_t max)
{
    field_error(checker->errors, FIELD_ERROR_TOO_MANY, path_of(checker, place), NULL,
                "must have at most %lld items", (long long)max);
}

static size_t count_characters(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* True: it is longer than the rule allows, which has been said. */
static bool is_too_long(const struct checker *checker, const struct field_rule *rule,
                        const struct place *place, const char *text)
{
    if (!rule->max || count_characters(text) <= (size_t)rule->max)
        return false;
    field_error(checker->errors, FIELD_ERROR_TOO_LONG, path_of(checker, place), NULL,
                "may not be more than %lld characters", (long long)rule->max);
    return true;
}

static void check_string(const struct checker *checker, const struct field_rule *rule,
                         const struct place *place, const cJSON *value)
{
    const cJSON *shown = rule->hidden ? NULL : value;
    const char *text = json_string(value, NULL);

    if (!text) {
        refuse_type(checker, place, value, "a string");
        return;
    }
    if (rule->min && !*text) {
        refuse_value(checker, place, shown, "must not be empty");
        return;
    }
    if (is_too_long(checker, rule, place, text))
        return;

    const char *problem = rule->check ? rule->check(text) : NULL;
    if (problem)
        refuse_value(checker, place, shown, problem);
}

static bool is_integer(const cJSON *value)
{
    return json_int(value, 0) == json_int(value, 1); /* the fallback is never both */
}

static void check_int(const struct checker *checker, const struct field_rule *rule,
                      const struct place *place, const cJSON *value)
{
    int64_t number = json_int(value, 0);

    if (!is_integer(value))
        refuse_type(checker, place, value, "an integer");
    else if (number < rule->min || number > rule->max)
        field_error(checker->errors, FIELD_ERROR_INVALID, path_of(checker, place), value,
                    "must be between %lld and %lld", (long long)rule->min, (long long)rule->max);
}

static void check_enum(const struct checker *checker, const struct field_rule *rule,
                       const struct place *place, const cJSON *value)
{
    CLEANUP(buf_releasep) struct buf supported = BUF_INIT(MAX_DETAIL);
    const char *text = json_string(value, NULL);
    bool fits = buf_append_string(&supported, "supported values: ");

    if (!text) {
        refuse_type(checker, place, value, "a string");
        return;
    }
    for (size_t i = 0; i == 0 || rule->names[i]; i++) {
        if (!rule->names[i])
            continue;
        if (str_equal(rule->names[i], text))
            return;
        bool more = rule->names[i + 1] != NULL;
        fits = fits && buf_printf(&supported, "\"%s\"%s", rule->names[i], more ? ", " : "");
    }
    field_error(checker->errors, FIELD_ERROR_NOT_SUPPORTED, path_of(checker, place), value, "%s",
                fits ? buf_string(&supported) : "");
}

static void check_amount(const struct checker *checker, const struct field_rule *rule,
                         const struct place *place, const cJSON *value)
{
    const char *text = json_string(value, NULL);
    struct quantity quantity;

    if (!text && !is_integer(value)) {
        refuse_type(checker, place, value, "a string or an integer");
        return;
    }
    if ((text && is_too_long(checker, rule, place, text)) || rule->type == RULE_AMOUNT)
        return;
    if (!quantity_of(value, &quantity))
        refuse_value(checker, place, value, "must be a quantity, for example 500m or 1Gi");
    else if (quantity.negative || (text && *text == '+') || (text && *text == '-'))
        refuse_value(checker, place, value, "must be a quantity without a sign");
}

/* Items that have the key of an earlier one. */
static void check_keys(const struct checker *checker, const struct place *place, const char *key,
                       const cJSON *list)
{
    struct map *seen = map_create(NULL);
    struct place element = { .parent = place };

    json_for_each (item, list) {
        const cJSON *value = *key ? json_get(item, key) : item;
        const char *text = json_string(value, NULL);

        if (text && map_get(seen, text))
            field_error_plain(checker->errors, FIELD_ERROR_DUPLICATE, path_of(checker, &element),
                              value);
        else if (text)
            map_set(seen, text, seen);
        element.index++;
    }
    map_destroy(seen);
}

static void check_list(const struct checker *checker, const struct field_rule *rule,
                       const struct place *place, const cJSON *value)
{
    struct place element = { .parent = place };
    size_t len = json_len(value);

    if (!cJSON_IsArray(value)) {
        refuse_type(checker, place, value, "an array");
        return;
    }
    if (rule->max && len > (size_t)rule->max) {
        refuse_count(checker, place, rule->max); /* and no look at what is in it */
        return;
    }
    if (len < (size_t)rule->min)
        refuse_value(checker, place, NULL, "must not be empty");
    json_for_each (item, value) {
        check_value(checker, rule->items, &element, item);
        element.index++;
    }
    if (rule->key)
        check_keys(checker, place, rule->key, value);
}

static void check_map(const struct checker *checker, const struct field_rule *rule,
                      const struct place *place, const cJSON *value)
{
    if (!cJSON_IsObject(value)) {
        refuse_type(checker, place, value, "an object");
        return;
    }
    if (rule->max && json_len(value) > (size_t)rule->max) {
        refuse_count(checker, place, rule->max);
        return;
    }
    json_for_each (member, value) {
        struct place inner = { .parent = place, .name = member->string };
        check_value(checker, rule->items, &inner, member);
    }
}

static void check_value(const struct checker *checker, const struct field_rule *rule,
                        const struct place *place, const cJSON *value)
{
    switch (rule->type) {
    case RULE_STRING:
        check_string(checker, rule, place, value);
        return;
    case RULE_BOOL:
        if (!cJSON_IsBool(value))
            refuse_type(checker, place, value, "a boolean");
        return;
    case RULE_INT:
        check_int(checker, rule, place, value);
        return;
    case RULE_ENUM:
        check_enum(checker, rule, place, value);
        return;
    case RULE_QUANTITY:
    case RULE_AMOUNT:
        check_amount(checker, rule, place, value);
        return;
    case RULE_SCALAR:
        if (!cJSON_IsString(value) && !json_is_number(value))
            refuse_type(checker, place, value, "a string or a number");
        return;
    case RULE_OBJECT:
        check_members(checker, rule->members, place, value);
        return;
    case RULE_LIST:
        check_list(checker, rule, place, value);
        return;
    case RULE_MAP:
        check_map(checker, rule, place, value);
        return;
    case RULE_ANY:
        return;
    }
}

static void check_members(const struct checker *checker, const struct field_rules *rules,
                          const struct place *place, const cJSON *object)
{
    if (!cJSON_IsObject(object)) {
        refuse_type(checker, place, object, "an object");
        return;
    }
    for (size_t i = 0; i < rules->len; i++) {
        const struct field_rule *rule = &rules->fields[i];
        const cJSON *value = json_get(object, rule->name);
        struct place member = { .parent = place, .name = rule->name };

        if (value && !cJSON_IsNull(value))
            check_value(checker, rule, &member, value);
        else if (rule->required)
            field_error_plain(checker->errors, FIELD_ERROR_REQUIRED, path_of(checker, &member),
                              NULL);
    }
}

void field_rules_check(struct arena *arena, const struct field_rules *rules, const char *path,
                       const cJSON *object, struct field_errors *errors)
{
    const struct checker checker = { .arena = arena, .errors = errors };
    const struct place root = { .name = path };

    check_members(&checker, rules, &root, object);
}
