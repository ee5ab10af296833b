#!/usr/bin/env bash
# The samples are accepted without a warning, also by the webhook, and together they show every field that
# a spec can have.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_kubernetes "asks a webhook"

webhook_prepare
webhook_certificate
webhook_start
webhook_register "$WEBHOOK_CA"

SAMPLES=$ROOT/config/samples
for file in "$SAMPLES"/*.yaml; do
    said=$(kn create --dry-run=server --validate=strict --warnings-as-errors -f "$file" 2>&1) ||
        fail "$(basename "$file"): $said"
done

# As written: what the API server fills in is no sample of anything.
kn create --dry-run=client -o json -f "$SAMPLES" | jq -s '
    [.[] | if .kind == "List" then .items[] else . end]' >"$PART/samples.json"
doubles=$(jq -r '[.[] | "\(.kind) \(.metadata.name)"] | group_by(.)[] | select(length > 1) | .[0]' "$PART/samples.json")
expect_eq "samples with one name" "" "$doubles"
missing=$(k get crd -o json | jq -r --arg group "$GROUP" --slurpfile samples "$PART/samples.json" '
    def fields($path): .properties // {} | to_entries[]
        | ($path + [.key]), (.key as $key | .value | fields($path + [$key])),
          (.key as $key | select($key != "tasks") | .value.items // {} | fields($path + [$key]));
    .items[] | select(.spec.group == $group) | .spec.names.kind as $kind
    | [$samples[0][] | select(.kind == $kind) | .spec | paths | map(select(type == "string")) | join(".")] as $shown
    | .spec.versions[0].schema.openAPIV3Schema.properties.spec | [fields([]) | join(".")] - $shown
    | .[] | "\($kind).spec.\(.)"')
expect_eq "fields without a sample" "" "$missing"
