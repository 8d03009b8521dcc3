#!/usr/bin/env bash
# Make every call that an operator needs, and check the responses of the server:
#
#     LANDFALL_URL=https://landfall.example.org LANDFALL_TOKEN=… scripts/curl-suite.sh
#     scripts/curl-suite.sh --own-server
#
# Each call prints one line: the request, the status, and the main part of the response. The script names everything that
# is unexpected, and then exits with 1 (with 2 if it could not continue). It needs bash, curl and python3.
#
# It uploads small files of its own, most of them made to fail, and deletes them at the end. It does not touch other files,
# except that it puts stuck files of the token's user back into the queue. With an administrator's token it checks more;
# with any other token it checks that the administrators' calls are refused.
#
# --own-server starts a server on a temporary folder, with the program in LANDFALL or else a fresh build. It then also makes
# the checks that would disturb other users: pause a stage, make a file stuck, leave an orphan blob and clean it up.

set -euo pipefail

UPLOADS=/api/v2/uploads
UNKNOWN_ID=01890000-0000-7000-8000-000000000000
own_server=false
case "${1:-}" in
    --own-server) own_server=true ;;
    "") ;;
    *) sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/landfall-curl-suite.XXXXXX")
server_pid=
made=()
calls=0
unexpected=0

# --- helpers ------------------------------------------------------------------------------------------------------------

# The response of the last call, and its status.
response=$work/response
status=000

die() {
    printf 'curl-suite: %s\n' "$1" >&2
    exit 2
}

complain() {
    unexpected=$((unexpected + 1))
    printf 'UNEXPECTED: %s\n' "$1" >&2
}

# Prints the value of a Python expression, in which `a` is the response.
of_response() {
    python3 -I -S -c '
import json, sys
text = open(sys.argv[1], encoding="utf-8").read()
try:
    a = json.loads(text) if text else None
    print(eval(sys.argv[2]))
except Exception as error:
    print(f"({type(error).__name__}: {error} in {text[:300]!r})")
' "$response" "$1"
}

# call METHOD PATH STATUS [EXPRESSION TO PRINT [BODY]]
call() {
    local method=$1 path=$2 wanted=$3 show=${4:-} body=${5-} attempt
    local options=(--silent --show-error --max-time 60 --output "$response" --write-out '%{http_code}' --request "$method")
    options+=(--header "Authorization: Bearer $token")
    if [ -n "$body" ]; then
        options+=(--header 'Content-Type: application/json' --data "$body")
    fi
    : >"$response"
    calls=$((calls + 1))
    for attempt in $(seq 1 300); do
        status=$(curl "${options[@]}" "$url$path") || die "$method $path: no response from $url"
        # The schedule of a job may have begun a run just now. Then it can be asked for after that.
        if [ "$status" != 409 ] || [ "$(of_response 'a["error"]["code"]')" != JOB_RUNNING ]; then break; fi
        sleep 0.2
    done
    local shown=
    if [ -n "$show" ]; then shown=$(of_response "$show"); fi
    if [ "${status:0:1}" != 2 ]; then shown=$(of_response 'a["error"]["code"] + ": " + a["error"]["message"]'); fi
    printf '%-6s %-62s %s  %s\n' "$method" "$path" "$status" "$shown"
    if [ "$status" != "$wanted" ]; then
        complain "$method $path returned $status, not $wanted: $(head -c 300 "$response")"
    fi
}

# expect WHAT EXPRESSION: the expression must be true for the response.
expect() {
    local found
    found=$(of_response "bool($2)")
    if [ "$found" != True ]; then complain "$1: $found, $(head -c 300 "$response")"; fi
}

# until_true WHAT PATH EXPRESSION: polls until the expression is true, for a minute at most.
until_true() {
    local what=$1 path=$2 expression=$3 attempt
    for attempt in $(seq 1 300); do
        curl --silent --max-time 60 --output "$response" --header "Authorization: Bearer $token" "$url$path" ||
            die "GET $path: no response from $url"
        if [ "$(of_response "bool($expression)")" = True ]; then return; fi
        sleep 0.2
    done
    complain "$what: not after $attempt requests to $path: $(head -c 300 "$response")"
}

# send NAME TEXT [BATCH]: registers a file and uploads its bytes; then `file` has its id.
send() {
    local path=$UPLOADS/files/init upload
    if [ -n "${3:-}" ]; then path=$UPLOADS/batches/$3/upload-urls; fi
    printf '%s' "$2" >"$work/bytes"
    call POST "$path" 201 'a["fileId"]' "{\"fileName\": \"$1\", \"fileSize\": $(wc -c <"$work/bytes")}"
    file=$(of_response 'a["fileId"]')
    upload=$(of_response 'a["uploadUrl"]')
    made+=("$file")
    calls=$((calls + 1))
    status=$(curl --silent --max-time 60 --output "$response" --write-out '%{http_code}' --upload-file "$work/bytes" "$upload") ||
        die "PUT $upload: no response"
    printf '%-6s %-62s %s\n' PUT "(the bytes of $1)" "$status"
    if [ "$status" != 200 ]; then complain "the upload of $1 returned $status: $(head -c 300 "$response")"; fi
}

confirm() {
    call POST "$UPLOADS/files/$1/confirm" 200 'a["status"]'
}

clean_up() {
    local code=$?
    set +e
    if [ -n "${url:-}" ]; then
        for file in "${made[@]}"; do
            curl --silent --max-time 10 --output /dev/null --request DELETE --header "Authorization: Bearer $token" \
                "$url$UPLOADS/files/$file"
        done
    fi
    if [ -n "$server_pid" ]; then
        kill "$server_pid" 2>/dev/null
        wait "$server_pid" 2>/dev/null
    fi
    # The server's log is useful only if something went wrong.
    if [ "$code" -ne 0 ] && [ -s "$work/log" ]; then
        printf 'curl-suite: the last lines of the server log:\n' >&2
        tail -n 20 "$work/log" >&2
    fi
    rm -rf "$work"
    exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

start_own_server() {
    local program=${LANDFALL:-}
    if [ -z "$program" ]; then
        local root
        root=$(cd "$(dirname "$0")/.." && pwd)
        (cd "$root" && cargo build --profile quick --locked -p landfall-cli) || die "the build failed"
        program=${CARGO_TARGET_DIR:-$root/target}/quick/landfall
    fi
    program=$(realpath "$program")
    # Without the caller's own settings.
    (
        cd "$work"
        exec env -i PATH="$PATH" PORT=0 DATA_DIR="$work/data" DATABASE_URL="sqlite://$work/data/landfall.db" \
            LOG_FORMAT=json "$program" serve >"$work/out" 2>"$work/log"
    ) &
    server_pid=$!
    local attempt
    for attempt in $(seq 1 300); do
        if grep -q 'listening on http' "$work/out" 2>/dev/null; then break; fi
        kill -0 "$server_pid" 2>/dev/null || die "the server did not start: $(tail -n 3 "$work/log")"
        sleep 0.2
    done
    url=$(grep -o 'listening on http[^ ]*' "$work/out") || die "the server does not print its address, after $attempt checks"
    url=${url#listening on }
    token=$(cd "$work" && env -i PATH="$PATH" DATA_DIR="$work/data" "$program" token --user admin --role admin --ttl 1d) ||
        die "no token can be made"
}

# --- the checks ---------------------------------------------------------------------------------------------------------

for program in curl python3; do
    command -v "$program" >/dev/null || die "$program is needed"
done
if $own_server; then
    start_own_server
else
    url=${LANDFALL_URL:-}
    token=${LANDFALL_TOKEN:-}
    [ -n "$url" ] && [ -n "$token" ] || die "set LANDFALL_URL and LANDFALL_TOKEN (or use --own-server)"
    url=${url%/}
fi
admin=false

section() { printf '\n# %s\n' "$1"; }

section "Health"
call GET /healthz 200 'a'
call GET /readyz 200 'a'
own_token=$token
token=invalid
call GET $UPLOADS/dashboard 401
token=$own_token

section "The dashboard"
call GET $UPLOADS/dashboard 200 'f"""{a["dlqDepth"]} dead letters, {a["stuckFiles"]} stuck, {sum(a["queueDepths"].values())} waiting"""'
failed_before=$(of_response 'a["dlqDepth"]')
expect "the dashboard has every state" \
    'set(a["statusDistribution"]) == {"registered", "uploaded", "queued", "scanning", "extracting", "chunking", "embedding", "ready", "failed", "cancelled"}'
expect "the dashboard has the queues" '{"file-extract", "file-chunk", "file-embed"} <= set(a["queueDepths"])'
expect "the dashboard has the metrics" 'set(a["metrics"]) == {"averageProcessingTime", "throughput24h", "failureRate24h"}'
expect "the dashboard has the circuits" '{c["service"] for c in a["circuits"]} == {"gateway", "embeddings", "scanner", "storage"}'
expect "dead letters are the failed files" 'a["dlqDepth"] == a["statusDistribution"]["failed"]'

section "Files: one good file, three that fail, one that is not confirmed"
call POST $UPLOADS/batches 201 'a["batchId"]' '{"fileCount": 4}'
batch=$(of_response 'a["batchId"]')
send good.txt 'The harbour closes at low tide.' "$batch" && good=$file && confirm "$good"
send one.pdf 'this is not a PDF' "$batch" && one=$file && confirm "$one"
send two.pdf 'this is not one either' "$batch" && two=$file && confirm "$two"
send blank.txt '     ' "$batch" && blank=$file && confirm "$blank"
send late.txt 'Ships wait outside until the water rises.' && late=$file
until_true "the batch is completed" "$UPLOADS/batches/$batch" 'a["status"] == "completed"'
call GET "$UPLOADS/batches/$batch" 200 'f"""{a["status"]}: {a["summary"]}"""'
expect "one file is ready and three failed" 'a["summary"]["ready"] == 1 and a["summary"]["failed"] == 3'
call GET "$UPLOADS/files/$one" 200 'f"""{a["status"]}: {a["error"]["code"]}"""'
expect "a failed file says why" 'a["error"]["code"] == "NOT_PDF" and a["error"]["message"] and a["error"]["stage"] == "extract"'
call GET "$UPLOADS/files/$late" 200 'f"""{a["status"]}, waits for {a["waitingFor"]}"""'
call GET $UPLOADS/dashboard 200 'f"""{a["dlqDepth"]} dead letters; the last error: {a["recentErrors"][0]["code"]}"""'
expect "there are three more dead letters" "a['dlqDepth'] >= $failed_before + 3"
expect "the recent errors include them" "'$one' in {e['fileId'] for e in a['recentErrors']}"

section "Stuck files"
call GET "$UPLOADS/stuck?limit=5" 200 'f"""{a["total"]} stuck, without workers: {a["withoutWorkers"]}"""'
expect "the response has a list of stuck files and a total" 'isinstance(a["files"], list) and a["total"] >= len(a["files"])'
call GET "$UPLOADS/stuck?limit=0" 400
call POST "$UPLOADS/stuck/$late/retry" 200 'f"""{a["previousStatus"]} -> {a["newStatus"]}"""'
expect "an upload that was not confirmed is queued" 'a["success"] and a["previousStatus"] == "uploaded" and a["newStatus"] == "queued"'
until_true "it becomes ready" "$UPLOADS/files/$late" 'a["status"] == "ready"'
call POST "$UPLOADS/stuck/$good/retry" 400
expect "a finished file is not stuck" 'a["error"]["code"] == "INVALID_STATE"'
call POST "$UPLOADS/stuck/$UNKNOWN_ID/retry" 404
call POST $UPLOADS/stuck/retry-all 200 'f"""{a["retriedCount"]} retried, {a["skippedCount"]} skipped"""'
expect "all stuck files can be retried" 'a["success"] and a["errors"] == []'
if $own_server; then
    call POST /api/v2/admin/queues/extract/pause 200 'a'
    send held.txt 'This file waits for now.' && held=$file && confirm "$held"
    call GET "$UPLOADS/files/$held" 200 'f"""{a["status"]}: {a["waitingFor"]}, {a["waitingMessage"]}"""'
    expect "it says that the stage is paused" 'a["waitingFor"] == "paused"'
    call POST "$UPLOADS/stuck/$held/retry" 200 'f"""retry {a["retryCount"]}"""'
    expect "a retry is counted" 'a["retryCount"] == 1'
    # Simulate a wrong clock. No API call can do this.
    python3 -I -S -c '
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=20) as db:
    changed = db.execute("UPDATE files SET is_due = 0, run_after = ? WHERE status = ?", ("2099-01-01T00:00:00+00:00", "queued"))
    assert changed.rowcount == 1, changed.rowcount
' "$work/data/landfall.db" || die "the file could not be made stuck"
    call GET $UPLOADS/stuck 200 'f"""{a["total"]} stuck: {[f["fileName"] + ", " + f["reason"] for f in a["files"]]}"""'
    expect "the file is stuck and says why" "[(f['id'], f['reason']) for f in a['files']] == [('$held', 'not_due')]"
    call GET $UPLOADS/dashboard 200 'f"""{a["stuckFiles"]} stuck"""'
    expect "the dashboard counts it" 'a["stuckFiles"] == 1'
    call POST $UPLOADS/stuck/retry-all 200 'f"""{a["retriedCount"]} retried"""'
    expect "it is retried" 'a["retriedCount"] == 1'
    call POST /api/v2/admin/queues/extract/resume 200 'a'
    until_true "it becomes ready" "$UPLOADS/files/$held" 'a["status"] == "ready"'
    call GET $UPLOADS/stuck 200 'f"""{a["total"]} stuck"""'
    expect "no file is stuck any more" 'a["total"] == 0'
fi

section "Orphans"
call GET $UPLOADS/orphans 200 'f"""{a["orphanBlobs"]["count"]} orphans, {a["abandonedUploads"]["count"]} abandoned, scanned {a["lastScanTime"]}"""'
expect "orphans have a count, a size and samples" 'set(a["orphanBlobs"]) == {"count", "totalSize", "samples"}'
admin_status=$(curl --silent --max-time 60 --output /dev/null --write-out '%{http_code}' \
    --header "Authorization: Bearer $token" "$url/api/v2/admin/jobs") || die "no response from $url"
case $admin_status in
    200) admin=true ;;
    403) printf '(This is not an administrator'\''s token: the script checks that it is refused.)\n' ;;
    *) complain "GET /api/v2/admin/jobs returned $admin_status" ;;
esac
if $own_server; then
    mkdir -p "$work/data/blobs/blobs/ff"
    printf 'an orphan blob.' >"$work/data/blobs/blobs/ff/stray"
    # Blobs younger than a day are not removed.
    python3 -I -S -c 'import os, sys, time; os.utime(sys.argv[1], (time.time() - 172800,) * 2)' "$work/data/blobs/blobs/ff/stray"
    call GET "$UPLOADS/orphans?refresh=true&scope=all" 200 'f"""{a["orphanBlobs"]["count"]} orphans: {a["orphanBlobs"]["samples"]}"""'
    expect "the orphan blob is found" 'a["orphanBlobs"]["count"] == 1 and a["orphanBlobs"]["totalSize"] == 15'
    call POST /api/v2/admin/jobs/orphan-cleanup/run 200 'f"""{a["run"]["metrics"]["orphanBlobs"]}"""'
    expect "it is removed" 'a["run"]["metrics"]["orphanBlobs"]["deleted"] == 1 and a["run"]["errors"] == []'
    call GET "$UPLOADS/orphans?refresh=true&scope=all" 200 'f"""{a["orphanBlobs"]["count"]} orphans"""'
    expect "no orphan is left" 'a["orphanBlobs"]["count"] == 0'
elif $admin; then
    call GET "$UPLOADS/orphans?refresh=true&scope=all" 200 'f"""{a["orphanBlobs"]["count"]} orphans"""'
else
    call GET "$UPLOADS/orphans?refresh=true&scope=all" 403
fi

section "Dead letters"
call GET "$UPLOADS/dlq?batchId=$batch" 200 'f"""{[(e["fileName"], e["code"]) for e in a["entries"]]}"""'
expect "all three failed files are listed" "{e['fileId'] for e in a['entries']} == {'$one', '$two', '$blank'}"
call GET "$UPLOADS/dlq?batchId=$batch&code=NOT_PDF&stage=extract&limit=1" 200 'f"""{len(a["entries"])} of them, next: {a["nextCursor"]}"""'
expect "a page has at most the limit, and a cursor for the next page" 'len(a["entries"]) == 1 and a["nextCursor"]'
call GET "$UPLOADS/dlq?code=BAD_LUCK" 400
call GET "$UPLOADS/dlq/groups?batchId=$batch" 200 'f"""{[(g["code"], g["count"]) for g in a["groups"]]}"""'
expect "there are two causes, the one with most files first" '[(g["code"], g["count"]) for g in a["groups"]] == [("NOT_PDF", 2), ("NO_TEXT", 1)]'
fingerprint=$(of_response 'a["groups"][0]["fingerprint"]')
call POST "$UPLOADS/dlq/$blank/retry" 200 'a["status"]'
until_true "it fails again" "$UPLOADS/files/$blank" 'a["status"] == "failed"'
call POST "$UPLOADS/dlq/$good/retry" 409
call POST $UPLOADS/dlq/retry-all 200 'f"""{a["status"]}: {a["retriedCount"]} retried, {a["skippedCount"]} skipped"""' \
    "{\"batchId\": \"$batch\", \"code\": \"NO_TEXT\"}"
expect "one file matches and is retried" 'a["status"] == "completed" and a["retriedCount"] == 1'
operation=$(of_response 'a["operationId"]')
call POST $UPLOADS/dlq/retry-all 400 '' '{"colour": "green"}'

section "Operations"
call GET "$UPLOADS/operations/$operation" 200 'f"""{a["status"]} by {a["createdBy"]}"""'
expect "the operation has ended" 'a["endedAt"] is not None and a["filter"]["code"] == "NO_TEXT"'
call POST "$UPLOADS/operations/$operation/stop" 200 'a["status"]'
expect "an ended operation keeps its status" 'a["status"] == "completed"'
call POST $UPLOADS/dlq/retry-all 200 'f"""{a["status"]}: {a["retriedCount"]} retried"""' \
    "{\"batchId\": \"$batch\", \"fingerprint\": \"$fingerprint\"}"
operation=$(of_response 'a["operationId"]')
until_true "an operation stops when its canaries fail in the same way" "$UPLOADS/operations/$operation" 'a["endedAt"] is not None'
call GET "$UPLOADS/operations/$operation" 200 'f"""{a["status"]}: {a["reason"]}"""'
expect "it is stopped and says why" 'a["status"] == "stopped" and a["reason"] and a["retriedCount"] == 2'
call GET "$UPLOADS/operations?limit=2" 200 'f"""{[o["status"] for o in a["operations"]]}"""'
expect "the newest operation is first" "a['operations'][0]['operationId'] == '$operation'"
call GET "$UPLOADS/operations/$UNKNOWN_ID" 404
until_true "the batch is completed again" "$UPLOADS/batches/$batch" 'a["status"] == "completed"'
call DELETE "$UPLOADS/dlq/$two" 204
call POST "$UPLOADS/dlq/$two/retry" 410
call DELETE "$UPLOADS/dlq/$good" 409

section "Notifications"
call GET "/api/v2/notifications?unread=true&limit=200" 200 'f"""{a["unreadCount"]} unread"""'
unread=$(of_response 'a["unreadCount"]')
expect "the owner was notified of a failed file" "'$one' in {n['fileId'] for n in a['notifications'] if n['type'] == 'file-failure-notification'}"
notification=$(of_response "next(n['notificationId'] for n in a['notifications'] if n['fileId'] == '$one')")
call POST "/api/v2/notifications/$notification/read" 200 'f"""{a["fileName"]}: {a["message"]}"""'
expect "it is marked as read" 'a["readAt"] is not None'
call GET "/api/v2/notifications?limit=1" 200 'f"""{a["unreadCount"]} unread"""'
expect "one notification less is unread" "a['unreadCount'] < $unread"

section "Maintenance"
if $admin; then
    call GET /api/v2/admin/jobs 200 'f"""{[j["name"] for j in a["jobs"]]}"""'
    expect "all jobs are listed" '{"stuck-file-recovery", "orphan-cleanup", "batch-timeout", "retention"} <= {j["name"] for j in a["jobs"]}'
    call POST /api/v2/admin/jobs/stuck-file-recovery/run 200 'f"""{a["run"]["metrics"]}"""'
    expect "it ran without errors" 'a["run"]["endedAt"] is not None and a["run"]["errors"] == [] and a["run"]["metrics"]["totalStuck"] >= 0'
    call POST /api/v2/admin/jobs/tidy-up/run 404
    call GET /api/v2/admin/queue-status 200 'f"""{len(a["workers"])} workers, {a["throughput"]}"""'
    expect "each schedule has a next run" 'all(s["nextRunAt"] for s in a["schedules"])'
    call GET /api/v2/admin/config 200 'f"""{sum(len(g["settings"]) for g in a["groups"])} settings"""'
    expect "secrets are hidden" 'all(s["value"] in ("", "***") for g in a["groups"] for s in g["settings"] if s["name"] == "JWT_SECRET")'
    call GET "$UPLOADS/dashboard?scope=all" 200 'f"""{a["dlqDepth"]} dead letters of all users"""'
else
    call POST /api/v2/admin/jobs/stuck-file-recovery/run 403
    call GET /api/v2/admin/queue-status 403
    call GET /api/v2/admin/config 403
    call GET "$UPLOADS/dashboard?scope=all" 403
fi

section "Clean up"
for file in "${made[@]}"; do
    if [ "$file" = "$two" ]; then continue; fi
    call DELETE "$UPLOADS/files/$file" 204
done
made=()
call GET "$UPLOADS/files/$one" 410

printf '\n%s calls, %s unexpected\n' "$calls" "$unexpected"
[ "$unexpected" -eq 0 ]
