package microbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"sagabench/bench/internal/microbench/wire"
	"sagabench/store/redisstore/redisconn"
)

const usPerS = 1e6

// sample is what one window measured.
type sample struct {
	calls    float64
	sagas    float64 // in all calls
	duration time.Duration
	cpu      cpu // of the server, without that of measuring it
	in, out  float64
	inside   map[string]Inside // commands that ran, without the harness' own
}

func (s sample) cpuPerCall() float64  { return s.cpu.all / s.calls }
func (s sample) corePerCall() float64 { return s.cpu.main / s.calls }
func (s sample) callsPerS() float64   { return s.calls / s.duration.Seconds() }
func (s sample) inPerCall() float64   { return s.in / s.calls }
func (s sample) outPerCall() float64  { return s.out / s.calls }

// measure sends the load and returns what the server's counters say about it. A
// refusal is returned with the sample.
func (b *bench) measure(ctx context.Context, l *wire.Load) (s sample, err error) {
	statsBefore, err := b.info(ctx, "all")
	if err != nil {
		return s, err
	}
	cpuBefore, err := b.cpu(ctx)
	if err != nil {
		return s, err
	}
	s.out = -b.received()
	duration, refused := wire.Send(b.conns, l)
	if refused != nil && !wire.IsRefusal(refused) {
		return s, refused
	}
	cpuAfter, err := b.cpu(ctx)
	if err != nil {
		return s, err
	}
	statsAfter, err := b.info(ctx, "all")
	if err != nil {
		return s, err
	}
	s.out += b.received()
	for _, trip := range l.Trips {
		s.calls += float64(trip.Calls)
		s.in += float64(len(trip.Bytes))
	}
	s.duration = duration
	s.cpu = cpu{cpuAfter.all - cpuBefore.all - b.pollUS, cpuAfter.main - cpuBefore.main - b.pollUS}
	s.inside = commandsBetween(statsBefore, statsAfter)
	return s, refused
}

// received returns the bytes that all senders have received.
func (b *bench) received() (sum float64) {
	for _, one := range b.conns {
		sum += float64(one.Received)
	}
	return sum
}

// calibrate measures pollUS in windows without calls.
func (b *bench) calibrate(ctx context.Context) error {
	const windows = 200
	sum := 0.0
	for range windows {
		s, err := b.measure(ctx, &wire.Load{})
		if err != nil {
			return err
		}
		sum += s.cpu.all
	}
	b.pollUS = sum / windows
	return nil
}

// info holds the fields of one INFO.
type info map[string]string

// info asks for one section, or for "all".
func (b *bench) info(ctx context.Context, section string) (info, error) {
	text, err := b.control.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	return redisconn.Fields(text), nil
}

// number returns 0 for a field that the server does not report.
func (i info) number(name string) float64 {
	x, _ := strconv.ParseFloat(i[name], 64)
	return x
}

// cpu is the CPU of the server's process since its start, in µs: of all threads, and of
// the main thread, which runs commands. Before Redis 6.2, main is the same as all. The
// child processes that write snapshots are in neither.
type cpu struct{ all, main float64 }

func (b *bench) cpu(ctx context.Context) (cpu, error) {
	fields, err := b.info(ctx, "cpu")
	if err != nil {
		return cpu{}, err
	}
	c := cpu{
		all:  usPerS * (fields.number("used_cpu_user") + fields.number("used_cpu_sys")),
		main: usPerS * (fields.number("used_cpu_user_main_thread") + fields.number("used_cpu_sys_main_thread")),
	}
	if c.all == 0 {
		return c, errors.New("INFO: no used_cpu_user")
	}
	c.main = cmp.Or(c.main, c.all)
	return c, nil
}

// Inside says how often a command ran, in a script or by itself, and its time by the
// server's own clock, in µs.
type Inside struct {
	Calls float64 `json:"calls"`
	US    float64 `json:"us"`
}

// commands returns what INFO says about each command since the server's start. Names
// are in lower case.
func (i info) commands() map[string]Inside {
	all := map[string]Inside{}
	for name, value := range i {
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			var one Inside
			_, _ = fmt.Sscanf(value, "calls=%g,usec=%g", &one.Calls, &one.US)
			all[command] = one
		}
	}
	return all
}

// commandsBetween returns what ran between two INFOs, without INFO itself and the
// acknowledgements of replicas.
func commandsBetween(before, after info) map[string]Inside {
	ran := after.commands()
	for name, was := range before.commands() {
		ran[name] = Inside{ran[name].Calls - was.Calls, ran[name].US - was.US}
	}
	maps.DeleteFunc(ran, func(name string, i Inside) bool { return i.Calls <= 0 || name == "info" || name == "replconf" })
	return ran
}
