package microbench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// sample is what one window measured.
type sample struct {
	calls    float64
	sagas    float64 // in all calls
	duration time.Duration
	cpu      cpu // of the server, without that of measuring it
	in, out  float64
	inside   map[string]Inside // commands that ran, without the harness' own
	foreign  float64           // bytes that the server received from other clients
}

func (s sample) cpuPerCall() float64  { return s.cpu.all / s.calls }
func (s sample) corePerCall() float64 { return s.cpu.main / s.calls }
func (s sample) corePerSaga() float64 { return s.cpu.main / s.sagas }
func (s sample) callsPerS() float64   { return s.calls / s.duration.Seconds() }
func (s sample) inPerCall() float64   { return s.in / s.calls }
func (s sample) outPerCall() float64  { return s.out / s.calls }
func (s sample) inPerSaga() float64   { return s.in / s.sagas }
func (s sample) outPerSaga() float64  { return s.out / s.sagas }

// measure sends the load and returns what the server's counters say about it. A
// refusal is returned with the sample.
func (b *bench) measure(ctx context.Context, l *load) (s sample, err error) {
	statsBefore, err := b.info(ctx, "all")
	if err != nil {
		return s, err
	}
	cpuBefore, err := b.cpu(ctx)
	if err != nil {
		return s, err
	}
	for _, one := range b.senders {
		s.out -= float64(one.received)
	}
	duration, refused := send(b.senders, l)
	if refused != nil && !isRefusal(refused) {
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
	if statsBefore["run_id"] != statsAfter["run_id"] {
		return s, errors.New("the server was restarted during the measurement")
	}
	for _, one := range b.senders {
		s.out += float64(one.received)
	}
	for _, trip := range l.trips {
		s.calls += float64(trip.calls)
		s.in += float64(len(trip.bytes))
	}
	s.duration = duration
	s.cpu = cpu{cpuAfter.all - cpuBefore.all - b.overhead.PollUS, cpuAfter.main - cpuBefore.main - b.overhead.PollUS}
	s.inside = commandsBetween(statsBefore, statsAfter)
	before, err := statsBefore.number("total_net_input_bytes")
	if err != nil {
		return s, err
	}
	after, err := statsAfter.number("total_net_input_bytes")
	s.foreign = after - before - s.in - b.overhead.bytes
	return s, errors.Join(err, refused)
}

// HarnessOverhead is the server's CPU that is not caused by the measured calls.
type HarnessOverhead struct {
	// PollUS is the CPU of asking for the server's CPU once. It is subtracted from
	// every price.
	PollUS float64 `json:"poll_us"`
	// IdleUS is the CPU per second without any call. It is part of every price.
	IdleUS float64 `json:"idle_us_per_s"`

	bytes float64 // that the server receives in a window without calls
}

// calibrate measures the harness overhead in windows without calls.
func (b *bench) calibrate(ctx context.Context) error {
	const windows = 200
	var o HarnessOverhead
	for range windows {
		s, err := b.measure(ctx, &load{})
		if err != nil {
			return err
		}
		o.PollUS += s.cpu.all / windows
		if o.bytes == 0 || s.foreign < o.bytes {
			o.bytes = s.foreign
		}
	}
	before, err := b.cpu(ctx)
	if err != nil {
		return err
	}
	const idle = 500 * time.Millisecond
	time.Sleep(idle)
	after, err := b.cpu(ctx)
	o.IdleUS = max(0, after.all-before.all-o.PollUS) / idle.Seconds()
	b.overhead = o
	return err
}

// info holds the fields of one INFO.
type info map[string]string

// info asks for one section, or for "all".
func (b *bench) info(ctx context.Context, section string) (info, error) {
	text, err := b.control.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	fields := info{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

func (i info) number(name string) (float64, error) {
	x, err := strconv.ParseFloat(i[name], 64)
	if err != nil {
		return 0, fmt.Errorf("INFO: %s: %q is not a number", name, i[name])
	}
	return x, nil
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
	var failed error
	us := func(name string) float64 {
		seconds, err := fields.number(name)
		failed = errors.Join(failed, err)
		return 1e6 * seconds
	}
	c := cpu{all: us("used_cpu_user") + us("used_cpu_sys")}
	c.main = c.all
	if _, known := fields["used_cpu_user_main_thread"]; known {
		c.main = us("used_cpu_user_main_thread") + us("used_cpu_sys_main_thread")
	}
	return c, failed
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

// commandsBetween returns what ran between two INFOs, without INFO itself.
func commandsBetween(before, after info) map[string]Inside {
	ran := after.commands()
	for name, was := range before.commands() {
		ran[name] = Inside{ran[name].Calls - was.Calls, ran[name].US - was.US}
	}
	maps.DeleteFunc(ran, func(name string, i Inside) bool { return i.Calls <= 0 || name == "info" })
	return ran
}
