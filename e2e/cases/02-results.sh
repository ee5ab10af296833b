#!/usr/bin/env bash
# Results of every shape arrive as the device sent them.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start d
add_proplet worker d
device_start device --identity d
wait_proplet worker Running

# What modules compute: always text.
while read -r function inputs expected; do
    add_task "$function" "$(wasm types)" "$inputs" \
        "$(jq -nc --arg name "$function" '{spec: {functionName: $name}}')"
    wait_task "$function" completed
    expect_eq "result of $function" "$expected" "$(task "$function" '.status.results | tojson')"
done <<'TABLE'
void []            ""
i64  ["41"]        "42"
f32  ["0.1","0.2"] "0.3"
f64  [1.5,2.25]    "3.75"
pair []            "2"
TABLE

# Digits beyond a double's, both ways.
create <<YAML
apiVersion: $API
kind: Task
metadata: {name: digits}
spec: {name: digits, functionName: i64, file: $(wasm types), inputs: [9007199254740993]}
YAML
wait_task digits completed
expect_eq "a large number" 9007199254740994 "$(task digits .status.results)"

# exact PATH...: JSON in one form, every digit kept, which jq does not
exact() {
    "$PYTHON_HOME/bin/python" -c '
import functools, json, sys
value = functools.reduce(lambda value, key: value.get(key), sys.argv[1:], json.load(sys.stdin))
print(json.dumps(value, sort_keys=True))' "$@"
}

# Shapes that other devices send.
number=0
while read -r shape; do
    number=$((number + 1))
    device_say device reply d "$shape"
    add_task "shape-$number" "$ADDITION" '[10, 32]'
    wait_task "shape-$number" completed
    expect_eq "result $shape as it is stored" "$(exact <<<"$shape")" \
        "$(object tasks "shape-$number" | exact status results)"
done <<'SHAPES'
"text with \"quotes\" and ü"
42
9007199254740993
1.5
true
{"nested":{"a":{}},"parts":[10,32,null],"sum":42}
[1,"two",[3],{}]
null
SHAPES
