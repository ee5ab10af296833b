/* The messages of devices as structs: alive, create, result (the Propeller MQTT contract,
 * messages of the device). Their measurements are in samples.h. */
#pragma once

#include "common/json/json.h"

/* The last part of a topic below "m/<domain>/c/<channel>/control/". */
enum message_kind {
    MESSAGE_UNKNOWN, /* a topic or payload that is not of the contract */
    MESSAGE_ALIVE,
    MESSAGE_CREATE,
    MESSAGE_METRICS,
    MESSAGE_TASK_METRICS,
    MESSAGE_RESULT,
    MESSAGE_INVOKE_RESULT, /* of a latent Task; like a result, and read as one */
    MESSAGE_RECLAIM,       /* the owner of the machine wants it back */
    MESSAGE_MODULE,        /* a device asks for a module; its topic is not below control/ */
    MESSAGE_MARKER,        /* our own: controller/marker */
    MESSAGE_COPY,          /* our own: below controller/quarantine */
};

/* "<domain>/<channel>": Proplets and messages of one channel have it in common. */
#define CHANNEL_KEY_LEN 600
bool channel_key(const char *domain, const char *channel,
                 char ret[static CHANNEL_KEY_LEN]); /* false: too long */
/* Domain and channel ids hold no '/', so the key is the part between "m/" and "/control" without
 * "/c". */
enum message_kind message_topic_parse(const char *topic, char ret_channel[static CHANNEL_KEY_LEN]);
/* "m/<domain>/c/<channel>/control/<suffix>" */
const char *message_topic(struct arena *arena, const char *channel, const char *suffix);
/* "m/<domain>/c/<channel>/registry/<suffix>": "proplet" for requests of devices, "server" for modules. */
const char *message_registry_topic(struct arena *arena, const char *channel, const char *suffix);

/*
 * The kind of message that the mailbox holds of a training Task beside results: an update that its
 * device handed over by HTTP or on an update topic, as it came. source: "<message id>" of the
 * attempt that it is for, and after a '#' the request that waits for the answer, if there is one
 * (coordinator.h).
 */
#define MAIL_UPDATE "update"
/* Updates of training, outside the channels: any device of the broker may publish here. */
#define UPDATE_FILTER "fl/rounds/+/updates/+"
/* false: not such a topic. */
bool message_update_topic(struct arena *arena, const char *topic, const char **ret_round,
                          const char **ret_identity);

struct alive_message {
    const char *proplet_id;
    bool alive; /* status is "alive"; "offline" is a last will, anything else is not accepted */
};
int message_alive_parse(struct arena *arena, const char *text, size_t len,
                        struct alive_message *ret, struct error *err) MUST_CHECK;

struct create_message {
    const char *proplet_id;
    const cJSON *metadata; /* status.metadata of a Proplet: only known members of the right type;
                              NULL: none */
};
int message_create_parse(struct arena *arena, const char *text, size_t len,
                         struct create_message *ret, struct error *err) MUST_CHECK;

/* A device asks for the module that its start names by image_url; it does not say who it is. */
#define MODULE_REQUEST_MAX_BYTES ((size_t)4096)
int message_module_parse(struct arena *arena, const char *text, size_t len, const char **ret_name,
                         struct error *err) MUST_CHECK;

#define RECLAIM_MAX_BYTES ((size_t)1024)
struct reclaim_message {
    const char *proplet_id;
    const char *reason; /* at most RECLAIM_REASON_MAX bytes without control characters; "": none */
};
int message_reclaim_parse(struct arena *arena, const char *text, size_t len,
                          struct reclaim_message *ret, struct error *err) MUST_CHECK;

/* More than --max-result-bytes can be, and as much again for escape sequences. */
#define RESULT_MAX_SENT ((size_t)2 << 20)
/* Why nothing of a result can be stored, although it is JSON. */
enum result_refusal {
    RESULT_STORABLE,
    RESULT_TOO_LARGE,  /* over RESULT_MAX_SENT */
    RESULT_UNREADABLE, /* the limits of json_parse: a surrogate alone, too many levels */
    RESULT_REFUSALS,
};
struct result_message {
    const char *task_id;    /* as sent in the start */
    const char *proplet_id; /* NULL: the device sends none (a microcontroller) */
    const cJSON *results;   /* NULL: absent; an array or object is its text (json_slice_value) */
    const char *error;      /* NULL: success (absent, null or empty) */
    enum result_refusal refusal; /* error says more; the device reported none */
};
/*
 * A module may print NUL, and a microcontroller's error text may hold any bytes: if the text is not
 * accepted as it stands, and is at most 1 MiB long, escaped NULs and bytes that are not UTF-8 are
 * replaced by U+FFFD, control characters by blanks, and it is read once more. No tree is built of it.
 */
int message_result_parse(struct arena *arena, const char *text, size_t len,
                         struct result_message *ret, struct error *err) MUST_CHECK;

/* The message with nothing in it that is not used: without results where there is an error. */
struct short_result {
    const char *task_id;
    enum result_refusal refusal;
    const char *text;
    size_t len;
};
int message_result_shorten(struct arena *arena, const char *text, size_t len,
                           struct short_result *ret, struct error *err) MUST_CHECK;

/* For parsers of messages other than results: JSON of at most so many bytes; ERROR_INVALID. */
#define MESSAGE_MAX_BYTES ((size_t)64 << 10)
int message_read(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                 struct error *err) MUST_CHECK;
/* For parsers: a member that must be a string and not empty. */
int message_string(const cJSON *object, const char *key, const char **ret,
                   struct error *err) MUST_CHECK;
/* The same of a string that may be absent or null, *ret is then NULL. Another type is an error, since
 * what is absent may be decided otherwise than what is wrong. */
int message_optional_string(const cJSON *object, const char *key, const char **ret,
                            struct error *err) MUST_CHECK;

/* Message ids: "<uid>" for attempt 1, "<uid>.<attempt>" later, "<uid>.<attempt>.<index>" of a
 * target of a broadcast. */
const char *message_id(struct arena *arena, const char *uid, int64_t attempt);
const char *message_id_of_target(struct arena *arena, const char *uid, int64_t attempt,
                                 int64_t index);
/* The part before the first dot. */
const char *message_id_uid(struct arena *arena, const char *id);
/* The number behind it, 1 if there is none, and the one behind that, -1 if there is none; false:
 * something else is there. */
bool message_id_numbers(const char *id, int64_t *ret_attempt, int64_t *ret_index);
