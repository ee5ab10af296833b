# shellcheck shell=bash disable=SC2034 # used by those who source it
# An S3 server that verifies signatures (rclone serve s3) with one bucket, and a client of its own for
# looking into it.

S3_BUCKET=models
S3_REGION=us-east-1
S3_ACCESS_KEY=AKIDEXAMPLE

# s3_start: sets S3_ENDPOINT, and S3_OPTIONS for a controller
s3_start() {
    mkdir -p "$PART/s3/$S3_BUCKET"
    spawn s3 "$PYTHON_HOME/bin/rclone" serve s3 --config /dev/null \
        --auth-key "$S3_ACCESS_KEY,$(secret_of s3)" --addr "$(has_node && printf 0.0.0.0 || printf 127.0.0.1):0" "$PART/s3"
    wait_for 120 "the S3 server" s3_listens
    S3_ENDPOINT=$(s3_listens)
    printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' \
        "$S3_ACCESS_KEY" "$(secret_of s3)" >"$PART/s3.credentials"
    S3_OPTIONS=(--model-store s3 --s3-endpoint "$S3_ENDPOINT" --s3-bucket "$S3_BUCKET"
        --s3-credentials-file "$PART/s3.credentials")
}
s3_listens() {
    sed -n 's#.*Starting s3 server on \[http://.*:\([0-9]*\)/*\]$#http://127.0.0.1:\1#p' "$LOGS/s3.log" | grep . ||
        ! tail -n 3 "$LOGS/s3.log"
}

# s3 PATH-AND-QUERY [FILE]: GET, or PUT of a file; the query in the order of its names
s3() {
    local digest body=(-X GET)
    digest=$(sha256sum "${2:-/dev/null}")
    [[ -z ${2:-} ]] || body=(-X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$2")
    curl -sSf --max-time 60 --aws-sigv4 "aws:amz:$S3_REGION:s3" --user "$S3_ACCESS_KEY:$(secret_of s3)" \
        -H "x-amz-content-sha256: ${digest%% *}" "${body[@]}" "$S3_ENDPOINT/$S3_BUCKET$1"
}
# s3_keys PREFIX: what is below it, a line each
s3_keys() {
    s3 "?list-type=2&prefix=${1//\//%2F}" | { grep -o '<Key>[^<]*' || true; } | cut -c6-
}
# s3_count_is PREFIX COUNT
s3_count_is() {
    local keys
    keys=$(s3_keys "$1") || return 1
    printf '%s\n' "$keys"
    (($(grep -c . <<<"$keys") == $2))
}
