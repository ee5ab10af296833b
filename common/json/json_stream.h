/* A stream of JSON, taken apart as yaml_read takes YAML apart, of which it is the other half. For this
 * folder only. */
#pragma once

#include "common/json/input.h"
#include "common/json/yaml.h"

/*
 * Reads objects that follow each other. A line with "---" may stand before each, and counts as a
 * document where two follow each other. Anything that is no JSON ends the stream with an error. One
 * item of "items" is in memory, and beside it the object without its items: each of at most 16 MiB.
 */
int json_stream_read(struct input *input, yaml_take_fn *take, void *ctx,
                     struct error *err) MUST_CHECK;
