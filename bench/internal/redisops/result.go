package redisops

import (
	"fmt"
	"runtime"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
	"sagabench/store"
)

// Result is what a measurement saw. What is nil was not measurable.
type Result struct {
	Operations int64 // that were answered as expected
	Requests   int64 // of which all operations were
	Errors     int64 // operations that failed
	FirstError string

	// Elapsed is from the first request to the last reply. It is shorter than the
	// duration if the list of LPOP was used up.
	Elapsed time.Duration

	Latency result.Latency // of a request, in ms

	// Of this process, or of redis-benchmark, per operation.
	ClientCPUUS, ClientAllocs, ClientAllocBytes *float64
	// Counted at the connections, per operation.
	RoundTrips, BytesSent, BytesReceived *float64

	Servers   result.Cost      // what the servers used in all: those of its figures that are the store's
	Resources result.Resources // of the same
	Store     store.Settings   // of the server, or of the node with the lowest durability

	// Failures says what could not be measured, and why.
	Failures []string
}

// Metrics returns the figures by key. Those that were not measurable are absent.
//
//   - ops_per_s, requests_per_s
//   - p50_ms, p95_ms, p99_ms, max_ms, mean_ms: latency of a request
//   - server_cpu_us, client_cpu_us: per operation; busiest_cpu_us: of the master of a cluster that
//     used most, per operation of all; main_core: share of a core that its main thread used
//   - client_allocs, client_alloc_bytes, round_trips, bytes_sent, bytes_received: per operation
//   - server_bytes_written: to disk, per operation
//   - server_rss_bytes: resident memory of all servers at the end
//   - errors: share of the operations that failed
func (r Result) Metrics() map[string]float64 {
	m := map[string]float64{}
	set := func(key string, x *float64) {
		if x != nil {
			m[key] = *x
		}
	}
	ops := float64(r.Operations)
	if seconds := r.Elapsed.Seconds(); seconds > 0 {
		m["ops_per_s"], m["requests_per_s"] = ops/seconds, float64(r.Requests)/seconds
	}
	if all := r.Operations + r.Errors; all > 0 {
		m["errors"] = float64(r.Errors) / float64(all)
	}
	set("p50_ms", r.Latency.P50)
	set("p95_ms", r.Latency.P95)
	set("p99_ms", r.Latency.P99)
	set("max_ms", r.Latency.Max)
	set("mean_ms", r.Latency.Mean)
	set("client_cpu_us", r.ClientCPUUS)
	set("client_allocs", r.ClientAllocs)
	set("client_alloc_bytes", r.ClientAllocBytes)
	set("round_trips", r.RoundTrips)
	set("bytes_sent", r.BytesSent)
	set("bytes_received", r.BytesReceived)

	set("server_cpu_us", per(r.Servers.StoreCPUUS, ops))
	set("busiest_cpu_us", per(r.Servers.StoreBusiestCPUUS, ops))
	set("main_core", r.Resources.StoreMainCore)
	set("server_bytes_written", per(r.Servers.StoreBytesWritten, ops))
	set("server_rss_bytes", r.Resources.StoreRSSBytes)
	return m
}

// Validity says whether the figures may be used. A run with errors is not valid: failed
// operations cost something else.
func (r Result) Validity() result.Validity {
	v := result.Validity{Valid: r.Errors == 0}
	if !v.Valid {
		v.Because = []string{fmt.Sprintf("%s of %s operations failed: %s", format.Count(r.Errors), format.Count(r.Operations+r.Errors), r.FirstError)}
	}
	for _, failure := range r.Failures {
		v.Warnings = append(v.Warnings, "not measured: "+failure)
	}
	m := r.Metrics()
	client := m["ops_per_s"] * m["client_cpu_us"] / 1e6
	servers := m["ops_per_s"] * m["server_cpu_us"] / 1e6
	const busy = 0.9
	if all := float64(runtime.NumCPU()); client+servers > busy*all {
		v.Warnings = append(v.Warnings, fmt.Sprintf(
			"shared CPUs: client and servers used %.2f and %.2f of %.0f cores, so the rate is that of both together", client, servers, all))
	}
	return v
}

func per(x *float64, n float64) *float64 {
	if x == nil || n <= 0 {
		return nil
	}
	y := *x / n
	return &y
}
