#!/bin/sh
# propeller-backup.sh FOLDER: copies the store of propeller-standalone into FOLDER, at most once a day, and keeps the
# seven newest copies.
set -eu
folder=${1:?a folder is needed}
rm -f -- "$folder"/propeller-????-??-??.db.new-* # of a run that was killed
copy=$folder/propeller-$(date -u +%F).db
[ -e "$copy" ] || propeller-standalone backup --to "$copy"
for old in $(printf '%s\n' "$folder"/propeller-????-??-??.db | sort -r | tail -n +8); do
    rm -- "$old"
done
