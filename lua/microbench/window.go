package microbench

import (
	"fmt"
	"slices"
	"time"
)

// sample is what one window measured.
type sample struct {
	calls   float64
	sagas   float64 // in all calls
	took    time.Duration
	cpu     cpu // of the server, without that of asking for it
	in, out float64
	inside  map[string]Inside // commands that ran, without those of the harness
	foreign float64           // bytes that the server got from others
}

// measure drives the load between two looks at the server.
func (b *Bench) measure(l *load, conns int, sagas float64) (sample, error) {
	s := sample{calls: float64(len(l.calls.ends)), sagas: sagas}
	before, err := b.control.info("all")
	if err != nil {
		return s, err
	}
	asked := b.control.sent
	was, err := b.control.info("cpu")
	if err != nil {
		return s, err
	}
	for _, conn := range b.conns[:conns] {
		s.in -= float64(conn.sent)
		s.out -= float64(conn.got)
	}
	var refusal error
	if s.took, refusal = drive(b.conns[:conns], l); refusal != nil && !isRefused(refusal) {
		return s, refusal
	}
	is, err := b.control.info("cpu")
	if err != nil {
		return s, err
	}
	after, err := b.control.info("all")
	if err != nil {
		return s, err
	}
	for _, conn := range b.conns[:conns] {
		s.in += float64(conn.sent)
		s.out += float64(conn.got)
	}
	if before["run_id"] != after["run_id"] {
		return s, fmt.Errorf("the server was restarted in the middle")
	}
	if err := s.between(was, is, before, after, float64(b.control.sent-asked)); err != nil {
		return s, err
	}
	s.cpu.all -= b.self.PollUS
	if s.cpu.main >= 0 {
		s.cpu.main -= b.self.PollUS
	}
	return s, refusal
}

// between takes from the four looks what changed; asked is how many bytes the
// questions had.
func (s *sample) between(was, is, before, after info, asked float64) error {
	from, err := was.cpu()
	if err != nil {
		return err
	}
	to, err := is.cpu()
	if err != nil {
		return err
	}
	s.cpu = to.since(from)
	s.inside = ran(before.commands(), after.commands())
	delete(s.inside, "info")
	got, err := after.number("total_net_input_bytes")
	if err != nil {
		return err
	}
	had, err := before.number("total_net_input_bytes")
	s.foreign = got - had - s.in - asked
	return err
}

// Self is what is known of measuring itself.
type Self struct {
	// PollUS is the CPU of the server for asking for its CPU once, which is taken
	// off every figure.
	PollUS float64 `json:"poll_us"`
	// ResolutionUS is the smallest step by which the server's CPU was seen to
	// grow.
	ResolutionUS float64 `json:"cpu_resolution_us"`
	// IdleUS is what the server uses in a second in which nobody asks it anything.
	// It is in the figures.
	IdleUS float64 `json:"idle_us_per_s"`
}

// calibrate looks at the server while nothing else happens.
func (b *Bench) calibrate() error {
	look := func() (float64, error) {
		i, err := b.control.info("cpu")
		if err != nil {
			return 0, err
		}
		c, err := i.cpu()
		return c.all, err
	}
	const looks = 200
	last, err := look()
	if err != nil {
		return err
	}
	var steps []float64
	first := last
	for range looks {
		next, err := look()
		if err != nil {
			return err
		}
		if next > last {
			steps = append(steps, next-last)
		}
		last = next
	}
	b.self.PollUS = (last - first) / looks
	if len(steps) > 0 {
		b.self.ResolutionUS = slices.Min(steps)
	}
	const idle = 500 * time.Millisecond
	time.Sleep(idle)
	next, err := look()
	b.self.IdleUS = max(0, next-last-b.self.PollUS) / idle.Seconds()
	return err
}
