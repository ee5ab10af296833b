#!/usr/bin/env bash
# A device killed while it computes: what it had comes again as a new attempt, and everything ends.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

# Who keeps its result back looks as if it had not heard the start: not to be told again meanwhile.
crash_controllers() {
    CONTROLLER_OPTIONS+=(--start-confirm-timeout 60s)
    controller_start
}
crash_world 3 4 apart

# on_first NAME: a Task on device-1 that has begun, and whose result this process will not send
on_first() {
    device_say device-1 hold device-1
    add_task "$1" "$(wasm nap)" '["50", 7]' "$(task_on worker-1)"
    wait_for 60 "the start of $1" journal_has device-1 ".event == \"start\" and .task == \"$(task "$1" .metadata.uid)\""
    wait_task "$1" running
}
came_again() { # NAME
    local uid
    uid=$(task "$1" .metadata.uid)
    wait_task "$1" completed 60
    expect_eq "result of $1" 7 "$(task "$1" .status.results)"
    expect_eq "attempts of $1" 2 "$(task "$1" .status.attempt)"
    expect_eq "Proplet of $1" worker-1 "$(task "$1" .status.assignedProplet)"
    expect_eq "starts of $1 on its device" "$uid $uid.2" \
        "$(journal device-1 '.event == "start"' | jq -r .task | grep "^$uid" | xargs)"
}

# Back at once: nobody may have noticed, but it introduces itself.
on_first sudden
kill_device device-1 --identity device-1
came_again sudden

# Back after it was seen to be away.
on_first away
killing device-1 device_crash device-1
wait_proplet worker-1 Offline
device_start device-1 --identity device-1
came_again away

# Under a load, with the controller killed while a device is away.
crash_load 60
after_ended 10 kill_device device-1 --identity device-1
after_ended 20 killing device-2 device_crash device-2
kill_controller
device_start device-2 --identity device-2
after_ended 40 kill_device device-3 --identity device-3
crash_verdict --max-crossings 6
