#!/usr/bin/env bash
# What was changed, and which unit tests look at it.
#   changed.sh base    the commit to compare with
#   changed.sh files   the files that differ from it, those that git does not know yet among them
#   changed.sh tests build/plain   the unit tests of these files, as `make unit TEST=` takes them, by what was built there
#
# The commit is $CHANGED_SINCE if that is set. Otherwise it is the nearest of the last tag and of the points where
# this branch left origin/main and main; on main itself, also in a fresh clone, the tenth commit before. For tests it
# is HEAD as long as something is not committed, so that what is being edited is tested and nothing else.
set -euo pipefail

base() {
    local ref commit distance best='' nearest=1000000
    if [[ -n ${CHANGED_SINCE:-} ]]; then
        git rev-parse --verify --quiet "$CHANGED_SINCE^{commit}"
        return
    fi
    for ref in "$(git describe --tags --abbrev=0 2>/dev/null)" origin/main main; do
        commit=$(git merge-base HEAD "${ref:-none}" 2>/dev/null) || continue
        distance=$(git rev-list --count "$commit..HEAD")
        ((distance > 0 && distance < nearest)) || continue
        best=$commit nearest=$distance
    done
    [[ -n $best ]] || best=$(git rev-list --first-parent --max-count=11 HEAD | tail -n 1)
    printf '%s\n' "$best"
}

files() { # files [COMMIT]
    {
        git diff --name-only --diff-filter=d "${1:-$(base)}"
        git ls-files --others --exclude-standard
    } | LC_ALL=C sort -u
}

# The sources of changed files: of a header its own, or those that include it.
sources_of() {
    local file
    while read -r file; do
        case $file in
        *.c) printf '%s\n' "$file" ;;
        *.h)
            if [[ -e ${file%.h}.c ]]; then
                printf '%s\n' "${file%.h}.c"
            else
                git grep -lF "#include \"$file\"" -- '*.c' || true
            fi
            ;;
        esac
    done
}

# A test looks at an object if it, or a fixture that it uses, names a symbol of that object. An object that no test
# looks at is looked at through those that use it; one of a controller is always, through all of its kind
# (controller/task of controller/task/plan/task_recovery_plan) as far as the reconciler: most of its tests ask another.
tests_of() { # tests_of COMMIT FOLDER
    local objects
    mapfile -t objects < <(find "$2" -name '*.o' ! -path '*/bench/*' ! -name main.o)
    awk -v folder="$2/" '
        function is_test(object) { return object ~ /\/tests\/(fuzz\/)?(test|fuzz)_[^\/]*$/ }
        function is_fixture(object) { return object ~ /\/tests\// && !is_test(object) }
        function is_controllers(object) { return object ~ /^controller\// }
        function kind_of(object) {
            sub(/(\/plan)?\/[^\/]*$/, "", object)
            return object
        }
        # To found[] the tests that use one of seen[], to further[] the others; a fixture is seen at once.
        function look(    n, again) {
            do {
                again = 0
                split("", further)
                for (n = 1; n <= uses; n++) {
                    if (!(names[n] in defined) || !(defined[names[n]] in seen) || user[n] in seen) continue
                    if (is_test(user[n]))
                        found[user[n]]
                    else if (is_fixture(user[n])) {
                        seen[user[n]]
                        again = 1
                    } else
                        further[user[n]]
                }
            } while (again)
        }
        FILENAME != ARGV[1] {
            object = substr($1, length(folder) + 1)
            sub(/\.o$/, "", object)
            if ($2 == "U") {
                user[++uses] = object
                names[uses] = $3
            } else if ($2 ~ /^[A-Z]$/)
                defined[$3] = object
            next
        }
        { sub(/\.c$/, "", $1); changed[$1] }
        END {
            for (object in changed) {
                if (is_test(object)) {
                    print object
                    continue
                }
                split("", found)
                split("", seen)
                seen[object]
                do {
                    again = 0
                    look()
                    for (user_of in further)
                        if (is_controllers(object) && kind_of(user_of) == kind_of(object)) again = seen[user_of] = 1
                } while (again)
                for (level = 0; level < 4 && !length(found); level++) {
                    look()
                    for (next_one in further) if (!length(found)) seen[next_one]
                }
                for (test in found) print test
            }
        }' <(files "$1" | sources_of) <(nm -A -g "${objects[@]}" | sed 's/:[0-9a-f ]* / /') |
        sed -E 's,/tests/(fuzz/)?(test_)?,/,' | LC_ALL=C sort -u
}

case ${1:-} in
base) base ;;
files) files ;;
tests)
    since=HEAD
    [[ -z ${CHANGED_SINCE:-} && -n $(git status --porcelain) ]] || since=$(base)
    tests_of "$since" "${2:?usage: changed.sh tests build/<flavour>}"
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
