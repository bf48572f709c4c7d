#!/bin/sh
# Profiles the bench server under load, over the embedded store and over Redis,
# and leaves the profile where the compiler looks for it: bench/default.pgo.
# Run it when the paths that every saga takes have changed.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'kill $redis $server 2>/dev/null || true; wait; rm -rf "$work"' EXIT
url=http://127.0.0.1:18080
SAGABENCH_SERVER_ADMIN_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d " \n") # profiles are for the admin
export SAGABENCH_SERVER_ADMIN_TOKEN

go build -o "$work/bench" ./bench
redis-server --port 16791 --save "" --dir "$work" >"$work/redis.log" &
redis=$! server=

for store in "pebble:$work/store" redis://127.0.0.1:16791; do
	"$work/bench" "$store" --listen "${url#http://}" --pprof >"$work/server.log" 2>&1 &
	server=$!
	until curl -sf -o /dev/null "$url/healthz"; do
		kill -0 $server || { cat "$work/server.log"; exit 1; }
		sleep 0.2
	done
	"$work/bench" load --target "$url" --in-flight 64 --duration 16s --warmup 1s --out "$work/result" >"$work/load.log" 2>&1 &
	load=$!
	sleep 3
	curl -sf -H "Authorization: Bearer $SAGABENCH_SERVER_ADMIN_TOKEN" -o "$work/${store%%:*}.pprof" "$url/debug/pprof/profile?seconds=10"
	wait $load || { cat "$work/load.log"; exit 1; }
	rm -r "$work/result"
	kill $server
	wait $server || { cat "$work/server.log"; exit 1; }
done
go tool pprof -proto -output bench/default.pgo "$work/pebble.pprof" "$work/redis.pprof"
