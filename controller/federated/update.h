/* This module reads the envelope that a participant sends after training, checks it, and decodes
 * the update as doubles (the Propeller MQTT contract, federated learning). Pure. */
#pragma once

#include "common/json/json.h"
#include "controller/federated/model.h"

/*
 * Accepted, from whichever way it came (results message, POST to the coordinator, fl/rounds/...):
 *
 *   {"update_b64":"...","format":"json-f64","num_samples":64,"metrics":{},...}   a device's results
 *   {"update":{"w":[...],"b":0.1},"num_samples":64,...}                          a module's own body
 *   {"update_envelope":{...one of these...}}
 *   "...one of these as JSON text in a string..."
 *   [0.1,0.2], 42, {"w":[...],"b":0.1}                                           bare numbers
 *
 * and one of these within update_b64. Of nested envelopes the innermost num_samples and metrics
 * count: the module knows better than the device's settings, and both ways of one update (HTTP and
 * results message) then say the same. round_id, job_id, task_id, global_version are ignored: job and
 * round are those of the Task that the message belongs to. A non-empty "error" is the reason.
 */
#define FL_FORMAT_JSON_F64 "json-f64" /* JSON of numbers: the parameters */
#define FL_FORMAT_F32_DELTA                                                                        \
    "f32-delta" /* the change to the model that the round began with: JSON of
                                             numbers, or little-endian IEEE 754 binary32, plain or in
                                             base64 once more; in binary it has the model's shape */
#define FL_FORMAT_PACKED_F64 "packed-f64" /* ours, in the model store: fl_update_pack */

#define FL_MAX_ENVELOPES 4            /* one in another */
#define FL_MAX_MEMBERS 64             /* of an envelope */
#define FL_MAX_METRICS ((size_t)4096) /* bytes of JSON */
#define FL_MAX_FORMAT 64              /* characters of its name */

struct fl_expected {
    const char *proplet_id; /* identity of the participant's device (clientId); NULL: not checked */
    int64_t max_samples; /* aggregator_settings.max_samples: a higher num_samples counts as this */
    int64_t default_samples; /* FL_NUM_SAMPLES of the Task: where the message says none */
    bool
        opaque; /* fl_is_opaque: update_b64, or the whole text without one, is the payload; it is not looked into */
};

struct fl_envelope {
    const char *format;  /* FL_FORMAT_JSON_F64 if none was named */
    const char *payload; /* text or bytes; NULL: ref */
    size_t payload_len;
    const char *ref;      /* only from fl_envelope_from_status: where the payload is */
    int64_t num_samples;  /* 1 .. max_samples */
    const cJSON *metrics; /* object; NULL: none */
};

/*
 * text: JSON, borrowed; *ret is in the arena or borrows from text. ERROR_INVALID: err->message is the
 * reason for the participant's status ("num_samples must be at least 1"); it quotes nothing but
 * names. The payload is decoded from base64, not yet understood: see fl_update_decode.
 */
int fl_envelope_parse(struct arena *arena, const char *text, size_t len,
                      const struct fl_expected *expected, struct fl_envelope *ret,
                      struct error *err) MUST_CHECK;

/* The same of a body: the bytes that an envelope {"format","update_b64"} would hold in base64.
 * Borrowed. */
int fl_envelope_of_body(struct arena *arena, const char *body, size_t len, const char *format,
                        const struct fl_expected *expected, struct fl_envelope *ret,
                        struct error *err) MUST_CHECK;

/*
 * Task.status.results of a participant whose update was accepted:
 * {"format","numSamples","metrics"?,"update_b64"} or, with ref, {"format","numSamples","metrics"?,"ref"}.
 * Owned by the arena. Only what was accepted is written there: a device that sends a ref gets
 * nowhere, as fl_envelope_parse knows none.
 */
cJSON *fl_envelope_to_status(struct arena *arena, const struct fl_envelope *envelope,
                             const char *ref);
int fl_envelope_from_status(struct arena *arena, const cJSON *results, struct fl_envelope *ret,
                            struct error *err) MUST_CHECK;

struct fl_update {
    const char *shape;    /* NULL: opaque */
    const double *values; /* finite; absolute, never a delta */
    size_t len;
    const char *payload; /* of an opaque update */
    size_t payload_len;
    int64_t num_samples;
    int64_t staleness; /* rounds that it is late; 0: of this round. The decoder leaves 0 */
};

/*
 * envelope: with a payload (what ref names has been read into it). base: the model that the round
 * began with; NULL: none, a delta is then one to zeros. With a base the update must have its shape.
 * In the arena; values are decoded without a tree: 8 bytes a parameter and the payload.
 * ERROR_INVALID: the reason, as above.
 */
int fl_update_decode(struct arena *arena, const struct fl_envelope *envelope,
                     const struct fl_model *base, struct fl_update *ret,
                     struct error *err) MUST_CHECK;
/* For concat: any bytes of any format. */
void fl_update_opaque(const struct fl_envelope *envelope, struct fl_update *ret);

/* For the model store: shape and doubles, 8 bytes a parameter, so that reading it again is no parsing.
 * The same update gives the same bytes on every machine. Store with format FL_FORMAT_PACKED_F64. */
const char *fl_update_pack(struct arena *arena, const struct fl_update *update, size_t *ret_len);

/* num_samples, for a late update divided by sqrt(1 + staleness) (Xie, Koyejo, Gupta: Asynchronous
 * Federated Optimization, 2019, polynomial staleness with a = 0.5). */
double fl_update_weight(const struct fl_update *update);
