package redisops

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"sagabench/bench/internal/result"
)

// randomNumber is replaced by redis-benchmark, in keys as workload.key makes them.
const randomNumber = "__rand_int__"

// redisBenchmark measures with redis-benchmark. It sends a number of requests, which is
// chosen by the rate of the warm-up.
func (b *bench) redisBenchmark(ctx context.Context) (r Result, err error) {
	const (
		program = "redis-benchmark"
		few     = int64(100)
		enough  = 20 * time.Millisecond // to estimate a rate
	)
	path, err := exec.LookPath(program)
	if err != nil {
		return r, fmt.Errorf("%s is not installed: install the package redis-tools (Debian, Ubuntu), or redis: %w", program, err)
	}
	send := func(n int64) (rate float64, err error) {
		if b.cfg.Operation == opLPop {
			n = b.listLength(float64(n))
		}
		pipeline := int64(b.cfg.Pipeline)
		n = (max(1, n) + pipeline - 1) / pipeline * pipeline // it sends whole pipelines
		if b.cfg.Operation == opLPop {
			if err := b.fillList(ctx, n); err != nil {
				return 0, err
			}
		}
		if r, err = b.sendWithBenchmark(ctx, path, n); err != nil {
			return 0, err
		}
		return float64(n) / r.Elapsed.Seconds(), nil
	}
	rate := 0.0
	for n := few; r.Elapsed < enough; n *= 8 {
		if rate, err = send(n); err != nil {
			return r, err
		}
	}
	if b.cfg.Warmup > 0 {
		if rate, err = send(int64(rate * b.cfg.Warmup.Seconds())); err != nil {
			return r, err
		}
	}
	_, err = send(int64(rate * b.cfg.Duration.Seconds()))
	return r, err
}

func (b *bench) sendWithBenchmark(ctx context.Context, path string, n int64) (r Result, err error) {
	host, port, err := net.SplitHostPort(b.target.addrs[0])
	if err != nil {
		return r, err
	}
	args := []string{
		"-h", host, "-p", port, "--dbnum", strconv.Itoa(b.target.db), "--csv",
		"-c", strconv.Itoa(b.cfg.Clients), "-P", strconv.Itoa(b.cfg.Pipeline), "-n", strconv.FormatInt(n, 10),
	}
	if b.target.password != "" {
		args = append(args, "-a", b.target.password)
	}
	if b.target.username != "" {
		args = append(args, "--user", b.target.username)
	}
	key := ""
	if len(b.w.many) > 0 {
		args = append(args, "-r", strconv.Itoa(len(b.w.many)))
		key = strings.Replace(b.w.many[0], b.w.key(0)[len(b.w.prefix)+1:], randomNumber, 1)
	} else {
		key = b.w.fixed[0]
	}
	for _, arg := range b.w.goRedis(ctx, b.control.Pipeline(), key, b.w).Args() { // queued, and never sent
		args = append(args, fmt.Sprint(arg))
	}
	if err := b.servers.Begin(ctx); err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil { // its output may quote the command, which is long
		return r, fmt.Errorf("redis-benchmark: %w: %.200s", err, problems.String()+out.String())
	}
	if err := b.servers.End(ctx); err != nil {
		return r, err
	}
	if err := parseBenchmark(out.Bytes(), n, &r); err != nil {
		return r, err
	}
	r.Requests = n / int64(b.cfg.Pipeline)
	for _, f := range result.LatencyFields { // as for the other clients
		if f.Percentile > 0 && r.Requests < result.SamplesFor(f.Percentile) {
			f.Set(&r.Latency, nil)
		}
	}
	cpu := float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Nanoseconds()) / 1e3
	r.ClientCPUUS = per(&cpu, float64(n))
	b.used(&r)
	return r, nil
}

var errBenchmarkOutput = errors.New("redis-benchmark: its output is not that of version 6.2 or later")

// parseBenchmark reads the CSV of one test of n requests: a line of names, and one of values.
// Versions before 6.2 write a test and its rate only, without names.
func parseBenchmark(text []byte, n int64, r *Result) error {
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 2 {
		return fmt.Errorf("%w: %.200q", errBenchmarkOutput, text)
	}
	number := func(name string) *float64 {
		i := slices.Index(lines[0], name)
		if i < 0 {
			err = errors.Join(err, fmt.Errorf("%w: no %s", errBenchmarkOutput, name))
			return nil
		}
		x, bad := strconv.ParseFloat(lines[1][i], 64)
		err = errors.Join(err, bad)
		return &x
	}
	rate := number("rps")
	r.Latency = result.Latency{
		P50: number("p50_latency_ms"), P95: number("p95_latency_ms"), P99: number("p99_latency_ms"),
		Max: number("max_latency_ms"), Mean: number("avg_latency_ms"),
	}
	switch {
	case err != nil:
		return err
	case *rate <= 0:
		return fmt.Errorf("%w: a rate of %v", errBenchmarkOutput, *rate)
	}
	r.Operations, r.Elapsed = n, time.Duration(float64(n) / *rate * float64(time.Second))
	return nil
}
