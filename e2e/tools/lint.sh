#!/usr/bin/env bash
# Everything that can be said about the sources without running them. `make lint` calls it with the
# compiler flags in LINT_CFLAGS.
#
# With LINT_ALL set the slow tools look at all sources, otherwise at those that were changed (changed.sh says since
# when).
#
# A line a finding, a line a check, and the sum at the end; with TEST_TALLY set, "lint <passed> <failed>" is appended
# to the file it names. What a slow tool said about a file is kept in the cache of this machine under the hash of the
# file and of all it includes, so that a second run is quick, also in another working copy.
set -euo pipefail

readonly MAX_FILE_LINES=900
readonly MAX_FUNCTION_LINES=60
readonly MAX_COMPLEXITY=15
readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/propeller/lint
readonly WORK=build/lint

PARALLEL=$(nproc)
read -r -a CFLAGS_GIVEN <<<"${LINT_CFLAGS:?run make lint}"

# Who may include whom: a folder, and prefixes of what it may include beside itself. What is named
# stands further up, so there is no circle. controller/<kind>: every folder of the controller that has no line, which
# is a kind that plugs in (controller/module/module.h). No line allows it to be included.
readonly LAYERS='
common/base
common/json           common/base/
common/net            common/base/
common/kube           common/base/ common/json/ common/net/curl_transfer.h common/net/http_server.h
common/schema         common/base/ common/json/ crds/
common/api            common/base/ common/json/ common/schema/ common/kube/object.h common/kube/conditions.h common/kube/packing.h
common/graph          common/base/ common/json/ common/schema/field_errors.h
common/view           common/base/ common/json/ common/api/kinds.h common/api/names.h common/kube/
common/runtime        common/base/ common/json/ common/kube/ common/net/http_server.h
certs                 common/base/ common/json/ common/kube/ common/runtime/options.h common/runtime/program.h
graph                 common/base/ common/json/ common/graph/ common/runtime/options.h common/runtime/options_completion.h common/runtime/program.h
controller/module     common/base/ common/kube/watch.h common/runtime/
controller/device     common/base/ common/json/ common/api/ common/kube/object.h
controller/events     common/runtime/events.h common/api/reasons.def common/api/reasons.h
controller/workload   common/base/ common/json/ common/api/ common/kube/conditions.h common/kube/guarded_patch.h common/kube/kinds.h common/kube/object.h common/kube/owner.h common/kube/watch.h controller/device/
controller/scheduler  common/base/ common/json/ common/api/ common/kube/conditions.h common/kube/object.h common/runtime/metrics.h common/runtime/store.h controller/device/ controller/workload/
controller/task/plan  common/base/ common/json/ common/api/ common/kube/conditions.h common/kube/kstatus.h common/kube/object.h controller/device/ controller/workload/ controller/scheduler/ controller/events/
controller/cache      common/base/ common/json/ common/api/ common/kube/ common/runtime/store.h controller/device/ controller/task/plan/
controller/bridge     common/base/ common/json/ common/api/ common/kube/object.h common/net/mqtt.h common/runtime/mailbox.h common/runtime/metrics.h common/runtime/store.h common/runtime/thread.h common/runtime/workqueue.h controller/device/ controller/cache/
controller/shared     common/base/ common/json/ common/api/ common/kube/ common/net/mqtt.h common/runtime/ certs/options.h controller/device/ controller/scheduler/ controller/bridge/ controller/module/
controller/blobs      common/base/ common/json/ common/api/names.h common/kube/ common/net/http_client.h controller/module/ controller/shared/options.h
controller/coordinator common/base/ common/kube/object.h common/net/http_server.h common/runtime/metrics.h controller/module/ controller/shared/options.h
controller/proplet    common/base/ common/json/ common/api/ common/kube/ common/runtime/ controller/device/ controller/workload/ controller/scheduler/ controller/cache/ controller/bridge/ controller/shared/ controller/events/ controller/module/
controller/task       common/base/ common/json/ common/api/ common/kube/ common/runtime/ controller/device/ controller/workload/ controller/scheduler/ controller/task/plan/ controller/cache/ controller/bridge/ controller/shared/ controller/events/ controller/module/
controller/job        common/base/ common/json/ common/api/ common/kube/ common/runtime/ controller/module/ controller/task/plan/ controller/task/owner.h controller/cache/ controller/shared/ controller/events/
controller/<kind>     common/base/ common/json/ common/api/ common/view/ common/schema/embedded.h common/kube/ common/runtime/ common/net/grpc_client.h common/net/http_client.h common/net/http_server.h controller/module/ controller/blobs/ controller/coordinator/ controller/device/ controller/task/plan/ controller/task/owner.h controller/cache/ controller/bridge/ controller/shared/ controller/events/ controller/job/holder.h
controller/process    common/base/ common/json/ common/kube/ common/runtime/ common/api/kinds.h common/api/names.h certs/ controller/module/ controller/cache/catch_up.h controller/shared/options.h
controller            common/base/ common/json/ common/runtime/program.h controller/process/
webhook               common/base/ common/json/ common/schema/ common/net/ common/api/ common/kube/object.h common/runtime/metrics.h common/runtime/health.h common/runtime/manager.h common/runtime/options.h common/runtime/program.h common/runtime/thread.h
standalone/store       common/base/ common/runtime/metrics.h common/runtime/thread.h
standalone/schema      common/base/ common/json/ common/schema/ common/api/ common/kube/object.h
standalone/patch       common/base/ common/json/ common/schema/ common/kube/object.h standalone/schema/
standalone/api         common/base/ common/json/ common/schema/ common/api/ common/kube/ common/runtime/thread.h common/runtime/metrics.h standalone/store/ standalone/schema/ standalone/patch/
standalone/server      common/base/ common/json/ common/kube/ common/net/ common/runtime/ standalone/api/
standalone/moving      common/base/ common/json/ common/api/task.h common/api/names.h common/kube/ standalone/store/kv.h standalone/schema/resource.h standalone/api/
standalone/process     common/ certs/ controller/shared/options.h controller/process/process.h standalone/store/ standalone/schema/ standalone/patch/ standalone/api/ standalone/server/ standalone/moving/
standalone             common/base/ common/json/ common/runtime/program.h standalone/process/
plugin/cli            common/base/ common/json/ common/api/kinds.h common/kube/ common/runtime/options.h
plugin/why            common/base/ common/json/ common/api/ common/kube/conditions.h common/kube/object.h common/runtime/store.h controller/scheduler/ controller/task/task_placement.h common/view/
plugin/commands       common/base/ common/json/ common/api/ common/schema/embedded.h common/schema/schema.h common/kube/ common/net/http_client.h controller/scheduler/scheduler.h controller/blobs/model_store.h controller/task/task_placement.h plugin/cli/ common/view/ plugin/why/
plugin                common/base/ common/json/ plugin/cli/ plugin/commands/
bench/fleet           common/base/ common/json/ common/runtime/options.h common/runtime/program.h
bench                 common/ controller/ webhook/ standalone/store/kv.h
'

# Folders that another program could use: they name neither this one nor what is its own.
readonly GENERAL='common/(base|json|net|kube|runtime)/.*'
readonly OWN_NAMES='proplet|propeller'
readonly NAMED_IN='common/base/version\.[ch]'

# Outside libraries: what names them in a source, and the only files that may (tests are free).
readonly LIBRARIES='
#include.<curl/                        common/net/curl_transfer\.h|bench/load\.c
#include."common/net/curl_transfer\.h"   common/net/(curl_transfer|http_client)\.c|common/kube/curl_setup\.h
#include."common/kube/curl_setup\.h"   common/kube/(curl_setup|transport|watch_loop)\.c
#include.<microhttpd\.h>               common/net/http_[a-z]*\.[ch]
#include.<gnutls/                      common/net/http_(pair|peer)\.c
#include.<sqlite3\.h>                  standalone/store/[a-z_]*\.[ch]
#include.<mosquitto\.h>                common/net/mqtt[a-z_]*\.[ch]|bench/fleet/links\.c
#include.<yaml\.h>                     common/json/yaml\.c
#include.<openssl/                     common/base/(certificate|digest)\.c|common/net/mqtt_(connect|serve|tls)\.c|controller/registry/signature\.c|certs/.*
#include.<vmafx\.pb-c\.h>              controller/vmafx/vmafx_getjob\.c
#include.<check\.h>                    none
cJSON_GetObjectItem                    common/json/.*
'

# Words that say "not finished"; [] keeps this file free of them.
readonly UNFINISHED='\b(TOD[O]|FIXM[E]|XX[X]|HAC[K]|WI[P])\b|\b([Pp]lacehol[d]er|[Ss]tu[b](s|bed)?)\b|[Nn]ot (yet )?implemente[d]|^(<<<<<<<|>>>>>>>) '

readonly SLEEPS='\b(sleep|usleep|nanosleep|clock_nanosleep|thrd_sleep)[ ]*\('

# Those that the slow tools look at.
looked_at() {
    if [[ -n ${LINT_ALL:-} ]]; then
        sources "$1"
    else
        comm -12 <(sources "$1") "$WORK/changed"
    fi
}

# Of the folders that exist so far.
sources() { { find bench common controller webhook certs standalone plugin graph -name "$1" 2>/dev/null || true; } | LC_ALL=C sort; }
scripts() { find . -path ./build -prune -o \( -name '*.sh' -o -path ./.ci/run \) -print | LC_ALL=C sort; }
texts() {
    find . \( -path ./build -o -path ./.git \) -prune -o -type f \( -name '*.[ch]' -o -name '*.sh' -o \
        -name '*.py' -o -name '*.md' -o -name '*.yaml' -o -name Makefile -o -path ./.ci/run \) -print | LC_ALL=C sort
}

#### Tools that look at one file at a time, and are slow.

# Runs a tool and prints its lines that match; one that fails and says nothing has failed to look.
findings_of() {
    local file=$1 pattern=$2 output status=0 found
    shift 2
    output=$("$@" 2>&1) || status=$?
    found=$(grep -E "$pattern" <<<"$output" || true)
    if [[ -n $found ]]; then
        echo "${found//$PWD\//}"
    elif ((status != 0)); then
        echo "$file: '$1' ended with status $status: ${output##*$'\n'}"
    fi
}

tool_clang() {
    findings_of "$1" '(error|warning):' clang "${CFLAGS_GIVEN[@]}" -fsyntax-only "$1"
}

# One file at a time: given several, version 14 finds va_lists that are not initialized.
tool_clang-tidy() {
    findings_of "$1" '(error|warning):' clang-tidy --quiet "$1" -- "${CFLAGS_GIVEN[@]}"
}

tool_cppcheck() {
    findings_of "$1" '^[^ ]*:[0-9]+: ' cppcheck --quiet --std=c11 --enable=warning,performance,portability \
        --inline-suppr --max-configs=1 --library=posix --error-exitcode=1 --suppress=missingIncludeSystem \
        --suppress=varFuncNullUB --suppress=readdirCalled \
        -D_GNU_SOURCE -I. --template='{file}:{line}: {severity}: {message} [{id}]' "$1"
}

# Alone, without what the build includes before every file.
tool_headers() {
    local compiler
    for compiler in gcc clang; do
        findings_of "$1" 'error:' "$compiler" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -I. -fsyntax-only \
            -x c -include "$1" /dev/null
    done
    [[ $(head -c 2 "$1") == '/*' ]] || echo "$1:1: does not begin with what it is"
    grep -q '^#pragma once$' "$1" || echo "$1:1: lacks #pragma once"
}

# What a tool finds in a file, from the cache if neither the file nor its surroundings changed.
run_tool() {
    local tool=$1 hash=${2%%:*} file=${2#*:}
    local kept=$CACHE/$tool/$hash
    if [[ ! -e $kept ]]; then
        "tool_$tool" "$file" >"$kept.$$"
        mv "$kept.$$" "$kept"
    fi
    cat "$kept"
}

# "hash:file", of the file, of all of ours that it includes, of the rules and of the tools.
hash_of() {
    local rules=$1 file=$2 rule
    local -a inputs
    if rule=$(gcc "${CFLAGS_GIVEN[@]}" -w -MM "$file" 2>/dev/null); then
        read -r -d '' -a inputs <<<"${rule//\\$'\n'/ }" || true
        unset 'inputs[0]' # the target
    else
        inputs=("$file")
        rules+=$$ # not to be found again
    fi
    printf '%s:%s\n' "$({ echo "$rules $file"; cat "${inputs[@]}"; } | sha256sum | cut -c1-32)" "$file"
}

hash_all() {
    local rules
    rules=$({ cat .clang-tidy "$0"; echo "${CFLAGS_GIVEN[@]}"; clang --version; cppcheck --version; gcc --version; } |
        sha256sum | cut -c1-32)
    looked_at "$1" | xargs -r -P "$PARALLEL" -n 1 "$0" --hash "$rules"
}

#### The checks. Each prints its findings, and nothing when there are none.

check_format() {
    sources '*.[ch]' | xargs -r -P "$PARALLEL" -n 20 clang-format --dry-run --Werror 2>&1 | grep -E 'error:' || true
}

each() {
    local tool=$1
    mkdir -p "$CACHE/$tool"
    xargs -r -a "$WORK/$2" -d '\n' -P "$PARALLEL" -n 1 "$0" --tool "$tool"
}
check_clang() { each clang hashes.c; }
check_clang-tidy() { each clang-tidy hashes.c; }
check_cppcheck() { each cppcheck hashes.c; }
check_headers() { each headers hashes.h; }

check_functions() {
    sources '*.c' | xargs -r pmccabe | awk -v lines="$MAX_FUNCTION_LINES" -v complexity="$MAX_COMPLEXITY" '
        $5 > lines { print $6 " " $7 ": " $5 " lines, at most " lines }
        $1 > complexity { print $6 " " $7 ": complexity " $1 ", at most " complexity }'
}

check_files() {
    { sources '*.[ch]'; scripts; find e2e -name '*.py'; } | while read -r file; do
        lines=$(wc -l <"$file")
        ((lines <= MAX_FILE_LINES)) || echo "$file: $lines lines, at most $MAX_FILE_LINES"
    done
}

# Two inputs: the table, then "file:line:included" of all that is ours and no test.
check_layers() {
    sources '*.[ch]' | grep -v /tests/ | xargs -r grep -HnoE '^#include "[^"]*"' /dev/null |
        sed -e 's/#include //' -e 's/"//g' | awk -F '[ :]+' '
        function layer_of(path) {
            sub(/\/[^\/]*$/, "", path)
            return path
        }
        NR == FNR && NF {
            name[++layers] = $1
            allowed[$1] = $0
        }
        NR == FNR { next }
        FNR == 1 {
            for (n = 1; n <= layers; n++) {
                count = split(allowed[name[n]], may)
                for (i = 2; i <= count; i++)
                    for (other = n; other <= layers; other++)
                        if (index(name[other] "/", may[i]) == 1 || layer_of(may[i]) == name[other])
                            print "layer " name[n] " may include " name[other] ", which does not stand above it"
            }
        }
        {
            own = layer_of($1)
            fine = layer_of($3) == own
            if (!(own in allowed) && own ~ /^controller\/[^\/]*$/)
                own = "controller/<kind>"
            count = split(allowed[own], may)
            for (i = 2; i <= count; i++)
                fine = fine || (index($3, may[i]) == 1 && $3 !~ /\/tests\//)
            if (!fine || !(own in allowed))
                print $1 ":" $2 ": " own (count ? " must not include " $3 : " is no layer")
        }' <(echo "$LAYERS") -
    sources '*.[ch]' | grep -xE "$GENERAL" | grep -vxE "$NAMED_IN" | xargs -r grep -HniE "$OWN_NAMES" || true
}

# Reasons of statuses and conditions are those of the table: no text of one stands elsewhere in the controller (a type
# of a condition of the same name may), no other text is used as one, and each row is used.
check_reasons() {
    local texts name
    texts=$(sed -nE 's/^REASON\(\w+, "(\w+)".*/\1/p' common/api/reasons.def | paste -sd'|')
    sources '*.[ch]' | grep ^controller/ | grep -v /tests/ >"$WORK/reasoning"
    xargs -a "$WORK/reasoning" grep -HnE "\"($texts)\"|\b(reason|problem|failure|word) = \"[A-Z]" |
        grep -vE 'condition_get\(|", CONDITION_|set_condition\(|has_changed\(|#define (PART|WORKLOAD)_|== MACHINE_NEW|DISRUPTIONS\[|"restartPolicy"' || true
    sed -nE 's/^REASON\((\w+),.*/\1/p' common/api/reasons.def | while read -r name; do
        xargs -a "$WORK/reasoning" grep -qw "REASON_$name" || echo "common/api/reasons.def: nothing uses REASON_$name"
    done
}

check_libraries() {
    local named allowed
    while read -r named allowed; do
        [[ -n $named ]] || continue
        sources '*.[ch]' | grep -v /tests/ | grep -vxE "$allowed" | xargs -r grep -HnE "$named" || true
    done <<<"$LIBRARIES"
}

check_words() {
    texts | xargs -r grep -HnE "$UNFINISHED" || true
}

# Lines that are added to sources, and not only moved, are in plain English; pages and all other texts are as a
# whole (prose.py).
readonly FRAGMENTS='(^\+[[:space:]]*(/?\*+|//|\||-)?[[:space:]]*|[.;:] )(Who|Whoever|What|Of (what|those|these|whom)|So (long|often|many)|Such a one|Nobody|Somebody)\b[^?]*$'
readonly ODD_WORDS='\b(anew|nought|whoever|whomever|somebody|nobody|whom|is told|is heard|mended)\b'

check_prose() {
    local since
    since=$(e2e/tools/changed.sh base)
    python3 -B e2e/tools/prose.py 2>&1 || true
    git diff -U0 "$since" -- '*.[ch]' | awk '
        function words(line) { # the string in it, or all of it
            if (match(line, /".*"/)) return substr(line, RSTART, RLENGTH)
            line = substr(line, 2); gsub(/^[ \t]+|[ \t]+$/, "", line); return line
        }
        /^[+][+][+] b/ { file = substr($0, 7); next }
        /^-/ { gone[words($0)] = 1 }
        /^[+]/ { text[++count] = $0; place[count] = file }
        END { for (i = 1; i <= count; i++) if (!(words(text[i]) in gone)) print place[i] "\t" text[i] }' | while IFS=$'\t' read -r file line; do
        if [[ $line =~ $FRAGMENTS || $line =~ $ODD_WORDS ]]; then
            printf '%s: not in plain English: %s\n' "$file" "${line#+}"
        fi
    done
}

# "te" is a header of HTTP.
check_spelling() {
    { sources '*.[ch]' | grep -v /tests/; find . -maxdepth 1 -name '*.md'; echo docs crds config; } |
        xargs -r codespell --ignore-words-list te || true
}

# Links between pages lead to files.
check_links() {
    local file link
    for file in *.md docs/*.md docs/*/*.md examples/*.md examples/*/*.md; do
        { grep -oE '\]\([^):# ]+[)#]' "$file" || true; } | while read -r link; do
            link=${link:2:-1}
            [[ -e $(dirname "$file")/$link ]] || echo "$file: no file $link"
        done
    done
}

# A test that lets time pass says why in a comment beside the wait or above it: "real time: <reason>". It waits for
# silence, lets a limit of the code under test pass, or sleeps without asking again and again for a condition.
readonly WAITS='observe_for |poll[(]&[^;]*, ([0-9][0-9][0-9]+|SILENCE_MS)[)]|ck_timed[(][a-z_]+, [0-9A-Z]'

check_waits() {
    local -a files
    mapfile -t files < <({ find e2e/cases -name '*.sh'; sources '*.c' | grep /tests/; } | LC_ALL=C sort)
    awk -v waits="$WAITS" -v missing=': waits without a comment "real time: <reason>"' '
        FNR == 1 { reason = loop = -9 }
        /real time: / { reason = FNR }
        /(for|while|for_each) [(]|do [{]/ { loop = FNR }
        ($0 ~ waits || (/poll[(]NULL, 0, / && FNR - loop > 8)) && FNR - reason > 3 { print FILENAME ":" FNR missing }' "${files[@]}"
}

# Tests wait for conditions.
check_sleeps() {
    sources '*.[ch]' | grep /tests/ | xargs -r grep -HnE "$SLEEPS" || true
    find e2e/cases -name '*.sh' 2>/dev/null | LC_ALL=C sort | xargs -r grep -HnE '\bsleep +[0-9$"]' || true
}

readonly SHELL_LIBRARY='^\./e2e/(lib|versions|lib/.*|cluster/.*)\.sh$'

shellcheck_of() { xargs -r -P "$PARALLEL" -n 4 shellcheck --external-sources --format=gcc || true; }

# What the library's readers meet in its place: the same constants, and a use of every variable that they may set.
stand_in() {
    scripts | grep -E "$SHELL_LIBRARY" | xargs grep -hE '^[A-Z][A-Z0-9_]*=[A-Za-z0-9._/-]+$' || true
    comm -12 <(scripts | grep -E "$SHELL_LIBRARY" | variables) <(scripts | grep -vE "$SHELL_LIBRARY" | variables) |
        sed 's/.*/: "${&[@]}"/'
}
variables() { xargs grep -hoE '\b[A-Z][A-Z0-9_]+\b' | LC_ALL=C sort -u; }

# To read that library, as nearly all scripts do, takes four seconds of a processor. It is read once, by itself; the
# others are looked at in a tree in which it is a few lines.
shellcheck_all() {
    local folder=$WORK/shell
    rm -rf "$folder"
    mkdir -p "$folder/e2e"
    find "$PWD" -mindepth 1 -maxdepth 1 ! -name e2e ! -name build -exec ln -s {} "$folder/" \;
    find "$PWD/e2e" -mindepth 1 -maxdepth 1 ! -name lib.sh -exec ln -s {} "$folder/e2e/" \;
    stand_in >"$folder/e2e/lib.sh"
    shellcheck_of <<<./e2e/lib.sh &
    scripts | grep -vx ./e2e/lib.sh | (cd "$folder" && shellcheck_of)
    wait $!
}

# They include each other: all or none from the cache.
check_shellcheck() {
    local kept
    kept=$CACHE/shellcheck-$({ shellcheck --version; cat "$0"; scripts | xargs -r sha256sum; } | sha256sum | cut -c1-32)
    if [[ ! -e $kept ]]; then
        shellcheck_all >"$kept.$$"
        mv "$kept.$$" "$kept"
    fi
    cat "$kept"
}

case ${1:-} in
--tool)
    run_tool "$2" "$3"
    exit
    ;;
--hash)
    hash_of "$2" "$3"
    exit
    ;;
esac

for tool in clang clang-format clang-tidy codespell cppcheck gcc pmccabe shellcheck; do
    command -v "$tool" >/dev/null || {
        echo "lint: '$tool' is missing; 'make deps' brings it" >&2
        exit 1
    }
done

mkdir -p "$CACHE" "$WORK"
find "$CACHE" -ignore_readdir_race -type f -mtime +14 -delete # another lint may use it, too
e2e/tools/changed.sh files >"$WORK/changed"
hash_all '*.c' >"$WORK/hashes.c"
hash_all '*.h' >"$WORK/hashes.h"

passed=0
failed=0
for name in format words prose spelling links sleeps waits files functions layers reasons libraries headers shellcheck clang cppcheck clang-tidy; do
    findings=$("check_$name")
    if [[ -z $findings ]]; then
        passed=$((passed + 1))
        printf '  %-12s ok\n' "$name"
    else
        failed=$((failed + 1))
        sort -u <<<"$findings"
        printf '  %-12s %d findings\n' "$name" "$(sort -u <<<"$findings" | wc -l)"
    fi
done

if [[ -n ${TEST_TALLY:-} ]]; then
    echo "lint $passed $failed" >>"$TEST_TALLY"
fi
echo "lint: $passed passed, $failed failed"
((failed == 0))
