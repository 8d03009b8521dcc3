#!/usr/bin/env bash
# Walk through what an operator asks a server for, and see whether it answers as it should:
#
#     LANDFALL_URL=https://landfall.example.org LANDFALL_TOKEN=… scripts/curl-suite.sh
#     scripts/curl-suite.sh --own-server
#
# Each call is one line: what was asked, the status, and what came back. Whatever is not as expected is named, and the
# script then ends with 1 (with 2 where it could not go on). It needs bash, curl and python3.
#
# It brings files of its own, all of them small, most of them made to fail, and deletes them at the end. Of other files it
# retries none, except that those of the token's user which are stuck are given back to the queue. An administrator's token
# sees more of it; any other is seen to be refused where it should be.
#
# --own-server starts a server on a temporary folder, with the program in LANDFALL or else a fresh build, and then also does
# what nobody would do to others: pause a stage, make a file stuck, leave a blob behind and clean it up.

set -euo pipefail

UPLOADS=/api/v2/uploads
NOBODY=01890000-0000-7000-8000-000000000000
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
surprises=0

# --- how it goes --------------------------------------------------------------------------------------------------------

# The answer of the last call, and its status.
answer=$work/answer
status=000

die() {
    printf 'curl-suite: %s\n' "$1" >&2
    exit 2
}

surprise() {
    surprises=$((surprises + 1))
    printf 'SURPRISE: %s\n' "$1" >&2
}

# What a Python expression makes of the answer `a`.
of_answer() {
    python3 -I -S -c '
import json, sys
text = open(sys.argv[1], encoding="utf-8").read()
try:
    a = json.loads(text) if text else None
    print(eval(sys.argv[2]))
except Exception as error:
    print(f"({type(error).__name__}: {error} in {text[:300]!r})")
' "$answer" "$1"
}

# call METHOD PATH STATUS [WHAT TO SHOW [BODY]]
call() {
    local method=$1 path=$2 wanted=$3 show=${4:-} body=${5-}
    local options=(--silent --show-error --max-time 60 --output "$answer" --write-out '%{http_code}' --request "$method")
    options+=(--header "Authorization: Bearer $token")
    if [ -n "$body" ]; then
        options+=(--header 'Content-Type: application/json' --data "$body")
    fi
    : >"$answer"
    calls=$((calls + 1))
    status=$(curl "${options[@]}" "$url$path") || die "$method $path: no answer from $url"
    local said=
    if [ -n "$show" ]; then said=$(of_answer "$show"); fi
    if [ "${status:0:1}" != 2 ]; then said=$(of_answer 'a["error"]["code"] + ": " + a["error"]["message"]'); fi
    printf '%-6s %-62s %s  %s\n' "$method" "$path" "$status" "$said"
    if [ "$status" != "$wanted" ]; then
        surprise "$method $path answered $status, not $wanted: $(head -c 300 "$answer")"
    fi
}

# expect WHAT EXPRESSION: what must be true of the answer.
expect() {
    local found
    found=$(of_answer "bool($2)")
    if [ "$found" != True ]; then surprise "$1: $found, $(head -c 300 "$answer")"; fi
}

# until WHAT METHOD PATH EXPRESSION: asks again, for a minute at most.
until_true() {
    local what=$1 path=$2 expression=$3 attempt
    for attempt in $(seq 1 300); do
        curl --silent --max-time 60 --output "$answer" --header "Authorization: Bearer $token" "$url$path" ||
            die "GET $path: no answer from $url"
        if [ "$(of_answer "bool($expression)")" = True ]; then return; fi
        sleep 0.2
    done
    surprise "$what: not within $attempt looks at $path: $(head -c 300 "$answer")"
}

# send NAME TEXT [BATCH]: registers a file and sends its bytes; its id is in `file` then.
send() {
    local path=$UPLOADS/files/init upload
    if [ -n "${3:-}" ]; then path=$UPLOADS/batches/$3/upload-urls; fi
    printf '%s' "$2" >"$work/bytes"
    call POST "$path" 201 'a["fileId"]' "{\"fileName\": \"$1\", \"fileSize\": $(wc -c <"$work/bytes")}"
    file=$(of_answer 'a["fileId"]')
    upload=$(of_answer 'a["uploadUrl"]')
    made+=("$file")
    calls=$((calls + 1))
    status=$(curl --silent --max-time 60 --output "$answer" --write-out '%{http_code}' --upload-file "$work/bytes" "$upload") ||
        die "PUT $upload: no answer"
    printf '%-6s %-62s %s\n' PUT "(the bytes of $1)" "$status"
    if [ "$status" != 200 ]; then surprise "the bytes of $1 were answered with $status: $(head -c 300 "$answer")"; fi
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
    # What the server said is worth keeping only if something was wrong.
    if [ "$code" -ne 0 ] && [ -s "$work/log" ]; then
        printf 'curl-suite: the last of what the server said:\n' >&2
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
        (cd "$root" && cargo build --release --locked) || die "it cannot be built"
        program=${CARGO_TARGET_DIR:-$root/target}/release/landfall
    fi
    program=$(realpath "$program")
    # With nothing of the caller's own settings.
    (
        cd "$work"
        exec env -i PATH="$PATH" PORT=0 DATA_DIR="$work/data" DATABASE_URL="sqlite://$work/data/landfall.db" \
            LOG_FORMAT=json "$program" serve >"$work/out" 2>"$work/log"
    ) &
    server_pid=$!
    local attempt
    for attempt in $(seq 1 300); do
        if grep -q '/#token=' "$work/out" 2>/dev/null; then break; fi
        kill -0 "$server_pid" 2>/dev/null || die "the server did not start: $(tail -n 3 "$work/log")"
        sleep 0.2
    done
    local link
    link=$(grep -o 'http[^ ]*/#token=.*' "$work/out") || die "the server does not say where it listens, after $attempt looks"
    url=${link%%/#token=*}
    token=${link##*/#token=}
}

# --- what is asked ------------------------------------------------------------------------------------------------------

for program in curl python3; do
    command -v "$program" >/dev/null || die "$program is needed"
done
if $own_server; then
    start_own_server
else
    url=${LANDFALL_URL:-}
    token=${LANDFALL_TOKEN:-}
    [ -n "$url" ] && [ -n "$token" ] || die "LANDFALL_URL and LANDFALL_TOKEN say which server and who asks (or: --own-server)"
    url=${url%/}
fi
admin=false

section() { printf '\n# %s\n' "$1"; }

section "Is it there?"
call GET /healthz 200 'a'
call GET /readyz 200 'a'
rightful=$token
token=rubbish
call GET $UPLOADS/dashboard 401
token=$rightful

section "The dashboard"
call GET $UPLOADS/dashboard 200 'f"""{a["dlqDepth"]} dead letters, {a["stuckFiles"]} stuck, {sum(a["queueDepths"].values())} waiting"""'
failed_before=$(of_answer 'a["dlqDepth"]')
expect "the dashboard has every state" \
    'set(a["statusDistribution"]) == {"registered", "uploaded", "queued", "scanning", "extracting", "chunking", "embedding", "ready", "failed", "cancelled"}'
expect "the dashboard has the queues" '{"file-extract", "file-chunk", "file-embed"} <= set(a["queueDepths"])'
expect "the dashboard has the metrics" 'set(a["metrics"]) == {"averageProcessingTime", "throughput24h", "failureRate24h"}'
expect "the dashboard has the circuits" '{c["service"] for c in a["circuits"]} == {"gateway", "embeddings", "scanner", "storage"}'
expect "dead letters are the failed files" 'a["dlqDepth"] == a["statusDistribution"]["failed"]'

section "Files: one that is good, three that fail, one that is not confirmed"
call POST $UPLOADS/batches 201 'a["batchId"]' '{"fileCount": 4}'
batch=$(of_answer 'a["batchId"]')
send good.txt 'The harbour closes at low tide.' "$batch" && good=$file && confirm "$good"
send one.pdf 'this is no PDF' "$batch" && one=$file && confirm "$one"
send two.pdf 'nor is this one' "$batch" && two=$file && confirm "$two"
send blank.txt '     ' "$batch" && blank=$file && confirm "$blank"
send late.txt 'Ships wait outside until the water rises.' && late=$file
until_true "the batch is completed" "$UPLOADS/batches/$batch" 'a["status"] == "completed"'
call GET "$UPLOADS/batches/$batch" 200 'f"""{a["status"]}: {a["summary"]}"""'
expect "one is ready and three failed" 'a["summary"]["ready"] == 1 and a["summary"]["failed"] == 3'
call GET "$UPLOADS/files/$one" 200 'f"""{a["status"]}: {a["error"]["code"]}"""'
expect "a file that failed says why" 'a["error"]["code"] == "NOT_PDF" and a["error"]["message"] and a["error"]["stage"] == "extract"'
call GET "$UPLOADS/files/$late" 200 'f"""{a["status"]}, waits for {a["waitingFor"]}"""'
call GET $UPLOADS/dashboard 200 'f"""{a["dlqDepth"]} dead letters; the last error: {a["recentErrors"][0]["code"]}"""'
expect "three more dead letters" "a['dlqDepth'] >= $failed_before + 3"
expect "recent errors name them" "'$one' in {e['fileId'] for e in a['recentErrors']}"

section "Stuck files"
call GET "$UPLOADS/stuck?limit=5" 200 'f"""{a["total"]} stuck, without workers: {a["withoutWorkers"]}"""'
expect "stuck files are a list and a total" 'isinstance(a["files"], list) and a["total"] >= len(a["files"])'
call GET "$UPLOADS/stuck?limit=0" 400
call POST "$UPLOADS/stuck/$late/retry" 200 'f"""{a["previousStatus"]} -> {a["newStatus"]}"""'
expect "an upload that was not confirmed is queued" 'a["success"] and a["previousStatus"] == "uploaded" and a["newStatus"] == "queued"'
until_true "it becomes ready" "$UPLOADS/files/$late" 'a["status"] == "ready"'
call POST "$UPLOADS/stuck/$good/retry" 400
expect "a file at rest is not stuck" 'a["error"]["code"] == "INVALID_STATE"'
call POST "$UPLOADS/stuck/$NOBODY/retry" 404
call POST $UPLOADS/stuck/retry-all 200 'f"""{a["retriedCount"]} retried, {a["skippedCount"]} skipped"""'
expect "all that is stuck can be retried" 'a["success"] and a["errors"] == []'
if $own_server; then
    call POST /api/v2/admin/queues/extract/pause 200 'a'
    send held.txt 'Nobody may read this yet.' && held=$file && confirm "$held"
    call GET "$UPLOADS/files/$held" 200 'f"""{a["status"]}: {a["waitingFor"]}, {a["waitingMessage"]}"""'
    expect "it says that the stage is paused" 'a["waitingFor"] == "paused"'
    call POST "$UPLOADS/stuck/$held/retry" 200 'f"""retry {a["retryCount"]}"""'
    expect "a retry is counted" 'a["retryCount"] == 1'
    # A clock that was wrong: no call can do this.
    python3 -I -S -c '
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=20) as db:
    changed = db.execute("UPDATE files SET is_due = 0, run_after = ? WHERE status = ?", ("2099-01-01T00:00:00+00:00", "queued"))
    assert changed.rowcount == 1, changed.rowcount
' "$work/data/landfall.db" || die "the file could not be made stuck"
    call GET $UPLOADS/stuck 200 'f"""{a["total"]} stuck: {[f["fileName"] + ", " + f["reason"] for f in a["files"]]}"""'
    expect "it is stuck and says why" "[(f['id'], f['reason']) for f in a['files']] == [('$held', 'not_due')]"
    call GET $UPLOADS/dashboard 200 'f"""{a["stuckFiles"]} stuck"""'
    expect "the dashboard counts it" 'a["stuckFiles"] == 1'
    call POST $UPLOADS/stuck/retry-all 200 'f"""{a["retriedCount"]} retried"""'
    expect "it is retried" 'a["retriedCount"] == 1'
    call POST /api/v2/admin/queues/extract/resume 200 'a'
    until_true "it becomes ready" "$UPLOADS/files/$held" 'a["status"] == "ready"'
    call GET $UPLOADS/stuck 200 'f"""{a["total"]} stuck"""'
    expect "nothing is stuck any more" 'a["total"] == 0'
fi

section "Orphans"
call GET $UPLOADS/orphans 200 'f"""{a["orphanBlobs"]["count"]} orphans, {a["abandonedUploads"]["count"]} abandoned, seen {a["lastScanTime"]}"""'
expect "orphans have a count, a size and samples" 'set(a["orphanBlobs"]) == {"count", "totalSize", "samples"}'
admin_status=$(curl --silent --max-time 60 --output /dev/null --write-out '%{http_code}' \
    --header "Authorization: Bearer $token" "$url/api/v2/admin/jobs") || die "no answer from $url"
case $admin_status in
    200) admin=true ;;
    403) printf '(This token is no administrator'\''s: it is seen to be refused.)\n' ;;
    *) surprise "GET /api/v2/admin/jobs answered $admin_status" ;;
esac
if $own_server; then
    mkdir -p "$work/data/blobs/blobs/ff"
    printf 'nobody knows me' >"$work/data/blobs/blobs/ff/stray"
    # What is younger than a day is left alone.
    python3 -I -S -c 'import os, sys, time; os.utime(sys.argv[1], (time.time() - 172800,) * 2)' "$work/data/blobs/blobs/ff/stray"
    call GET "$UPLOADS/orphans?refresh=true" 200 'f"""{a["orphanBlobs"]["count"]} orphans: {a["orphanBlobs"]["samples"]}"""'
    expect "the blob that nobody knows is found" 'a["orphanBlobs"]["count"] == 1 and a["orphanBlobs"]["totalSize"] == 15'
    call POST /api/v2/admin/jobs/orphan-cleanup/run 200 'f"""{a["run"]["metrics"]["orphanBlobs"]}"""'
    expect "it is removed" 'a["run"]["metrics"]["orphanBlobs"]["deleted"] == 1 and a["run"]["errors"] == []'
    call GET "$UPLOADS/orphans?refresh=true" 200 'f"""{a["orphanBlobs"]["count"]} orphans"""'
    expect "nothing is left over" 'a["orphanBlobs"]["count"] == 0'
elif $admin; then
    call GET "$UPLOADS/orphans?refresh=true" 200 'f"""{a["orphanBlobs"]["count"]} orphans"""'
else
    call GET "$UPLOADS/orphans?refresh=true" 403
fi

section "Dead letters"
call GET "$UPLOADS/dlq?batchId=$batch" 200 'f"""{[(e["fileName"], e["code"]) for e in a["entries"]]}"""'
expect "all three are there" "{e['fileId'] for e in a['entries']} == {'$one', '$two', '$blank'}"
call GET "$UPLOADS/dlq?batchId=$batch&code=NOT_PDF&stage=extract&limit=1" 200 'f"""{len(a["entries"])} of them, next: {a["nextCursor"]}"""'
expect "a page has as many as it may, and there is a next one" 'len(a["entries"]) == 1 and a["nextCursor"]'
call GET "$UPLOADS/dlq?code=BAD_LUCK" 400
call GET "$UPLOADS/dlq/groups?batchId=$batch" 200 'f"""{[(g["code"], g["count"]) for g in a["groups"]]}"""'
expect "there are two causes, the one with most files first" '[(g["code"], g["count"]) for g in a["groups"]] == [("NOT_PDF", 2), ("NO_TEXT", 1)]'
fingerprint=$(of_answer 'a["groups"][0]["fingerprint"]')
call POST "$UPLOADS/dlq/$blank/retry" 200 'a["status"]'
until_true "it failed once more" "$UPLOADS/files/$blank" 'a["status"] == "failed"'
call POST "$UPLOADS/dlq/$good/retry" 409
call POST $UPLOADS/dlq/retry-all 200 'f"""{a["status"]}: {a["retriedCount"]} retried, {a["skippedCount"]} skipped"""' \
    "{\"batchId\": \"$batch\", \"code\": \"NO_TEXT\"}"
expect "one matched and is retried" 'a["status"] == "completed" and a["retriedCount"] == 1'
operation=$(of_answer 'a["operationId"]')
call POST $UPLOADS/dlq/retry-all 400 '' '{"colour": "green"}'

section "Operations"
call GET "$UPLOADS/operations/$operation" 200 'f"""{a["status"]} by {a["createdBy"]}"""'
expect "it is over" 'a["endedAt"] is not None and a["filter"]["code"] == "NO_TEXT"'
call POST "$UPLOADS/operations/$operation/stop" 200 'a["status"]'
expect "what is over stays as it ended" 'a["status"] == "completed"'
call POST $UPLOADS/dlq/retry-all 200 'f"""{a["status"]}: {a["retriedCount"]} retried"""' \
    "{\"batchId\": \"$batch\", \"fingerprint\": \"$fingerprint\"}"
operation=$(of_answer 'a["operationId"]')
until_true "a group whose canaries fail the same way is left alone" "$UPLOADS/operations/$operation" 'a["endedAt"] is not None'
call GET "$UPLOADS/operations/$operation" 200 'f"""{a["status"]}: {a["reason"]}"""'
expect "it stopped and says why" 'a["status"] == "stopped" and a["reason"] and a["retriedCount"] == 2'
call GET "$UPLOADS/operations?limit=2" 200 'f"""{[o["status"] for o in a["operations"]]}"""'
expect "the newest is the first" "a['operations'][0]['operationId'] == '$operation'"
call GET "$UPLOADS/operations/$NOBODY" 404
until_true "the batch is completed again" "$UPLOADS/batches/$batch" 'a["status"] == "completed"'
call DELETE "$UPLOADS/dlq/$two" 204
call POST "$UPLOADS/dlq/$two/retry" 410
call DELETE "$UPLOADS/dlq/$good" 409

section "Notifications"
call GET "/api/v2/notifications?unread=true&limit=200" 200 'f"""{a["unreadCount"]} unread"""'
unread=$(of_answer 'a["unreadCount"]')
expect "the owner was told of a file that failed" "'$one' in {n['fileId'] for n in a['notifications'] if n['type'] == 'file-failure-notification'}"
notification=$(of_answer "next(n['notificationId'] for n in a['notifications'] if n['fileId'] == '$one')")
call POST "/api/v2/notifications/$notification/read" 200 'f"""{a["fileName"]}: {a["message"]}"""'
expect "it is marked as read" 'a["readAt"] is not None'
call GET "/api/v2/notifications?limit=1" 200 'f"""{a["unreadCount"]} unread"""'
expect "one less is unread" "a['unreadCount'] < $unread"

section "Maintenance"
if $admin; then
    call GET /api/v2/admin/jobs 200 'f"""{[j["name"] for j in a["jobs"]]}"""'
    expect "the jobs are known" '{"stuck-file-recovery", "orphan-cleanup", "batch-timeout", "retention"} <= {j["name"] for j in a["jobs"]}'
    call POST /api/v2/admin/jobs/stuck-file-recovery/run 200 'f"""{a["run"]["metrics"]}"""'
    expect "it ran without errors" 'a["run"]["endedAt"] is not None and a["run"]["errors"] == [] and a["run"]["metrics"]["totalStuck"] >= 0'
    call POST /api/v2/admin/jobs/tidy-up/run 404
    call GET /api/v2/admin/queue-status 200 'f"""{len(a["workers"])} workers, {a["throughput"]}"""'
    expect "the schedules are there" 'all(s["nextRunAt"] for s in a["schedules"])'
    call GET "$UPLOADS/dashboard?scope=all" 200 'f"""{a["dlqDepth"]} dead letters of everybody"""'
else
    call POST /api/v2/admin/jobs/stuck-file-recovery/run 403
    call GET /api/v2/admin/queue-status 403
    call GET "$UPLOADS/dashboard?scope=all" 403
fi

section "And away with it"
for file in "${made[@]}"; do
    if [ "$file" = "$two" ]; then continue; fi
    call DELETE "$UPLOADS/files/$file" 204
done
made=()
call GET "$UPLOADS/files/$one" 410

printf '\n%s calls, %s surprises\n' "$calls" "$surprises"
[ "$surprises" -eq 0 ]
