#!/bin/sh
# A worker in curl and a POSIX shell: it claims answers under a lease, reads their bytes, writes one more field, and acks.
#
#   worker.sh URL PARTITION FOLDER
#
# FOLDER is the storage: the bytes of a cell lie in the file {global_index}@{field}. The worker reads the field `text` and
# writes `words`, the number of its words. It ends when its task is done; killed, its rows go to another after LEASE_S.
# Replies are compact JSON, so that sed finds the few members it needs; for more of them, take a JSON parser.
set -eu

[ $# -eq 3 ] || { echo "usage: $0 URL PARTITION FOLDER" >&2; exit 2; }
url=$1 partition=$2 folder=$3
TASK=count_words LEASE_S=60
worker="curl-$$-$(date +%s)" round=0

# POST a body; the reply. Each call of a round has a key, so that curl may send it again and it is done once.
post() { # verb path body
    curl --silent --show-error --fail-with-body --retry 10 --retry-connrefused --retry-max-time 120 \
        -H "Idempotency-Key: $worker-$round-$1" --json "$3" "$url/v1/$2"
}

# A member of a reply: a string, or the numbers of an array.
text() { printf '%s' "$1" | sed -n "s/.*\"$2\":\"\([^\"]*\)\".*/\1/p"; }
numbers() { printf '%s' "$1" | sed -n "s/.*\"$2\":\[\([0-9,]*\)\].*/\1/p"; }

while :; do
    round=$((round + 1))
    reply=$(post claim "partitions/$partition/tasks/$TASK/claims" '{"fields": ["text"], "include": [], "batch_size": 4,
        "min_batch_size": 1, "wait_s": 20, "ack": "explicit", "lease_s": '$LEASE_S', "worker": "'"$worker"'"}')
    case $reply in
        *'"claim":null'*'"done":true'*) break ;;
        *'"claim":null'*) continue ;;
    esac
    rows=$(numbers "$reply" global_indexes)
    for row in $(echo "$rows" | tr ',' ' '); do
        wc -w < "$folder/$row@text" | tr -d ' ' > "$folder/$row@words"
    done
    post produce "partitions/$partition/production" '{"global_indexes": ['"$rows"'],
        "field_schema": {"words": {"kind": "object"}}, "backend_meta": {"words": {"const": "2"}}}' > /dev/null
    post ack "claims/$(text "$reply" claim_id)/ack" '{"token": "'"$(text "$reply" token)"'"}' > /dev/null
    echo "$worker: counted the words of $rows"
done
