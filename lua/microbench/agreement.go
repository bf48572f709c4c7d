package microbench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Look is what a server has counted so far.
type Look struct{ commands map[string]Inside }

// Look looks at the server, before and after a run of sagas on it.
func (b *Bench) Look() (Look, error) {
	i, err := b.control.info("all")
	if err != nil {
		return Look{}, fmt.Errorf("redis at %s: %w", b.options.Addr, err)
	}
	return Look{i.commands()}, nil
}

// Run is what a run of sagas on the server reported of itself. All sagas went
// well.
type Run struct {
	Steps      int
	SagasPerS  float64
	CPUUS      float64 // of the store, per saga
	Calls      float64 // of the store, per saga
	RoundTrips float64 // per saga
}

// Agreement sets what a run cost the server beside the sum of its scripts' prices.
// The prices are of calls that take as many sagas as those of the run did, and
// are sent as many at a time over one connection.
type Agreement struct {
	SagasPerCall float64 `json:"sagas_per_call"`
	CallsAtOnce  float64 `json:"calls_per_round_trip"`
	EveryUS      float64 `json:"round_trip_every_us"`

	RunUS float64 `json:"run_cpu_us"` // per saga
	// PacedUS is the sum when round trips begin as often as in the run: the
	// server sleeps as long between them and finds its caches as cold.
	PacedUS float64 `json:"paced_cpu_us"`
	// BackToBackUS is the sum when the next round trip follows at once.
	BackToBackUS float64 `json:"back_to_back_cpu_us"`
	Ratio        float64 `json:"paced_to_run"`

	AchievedPerS float64 `json:"achieved_per_s"`
	CeilingPerS  float64 `json:"ceiling_per_s"` // of a core, back to back
	Share        float64 `json:"achieved_to_ceiling"`
}

// Agreeing is how far the ratio may be from 1 for the sum to agree with a run.
const Agreeing = 0.15

var errNoRun = errors.New("too few sagas to tell how they reached the server")

// flow is how the sagas of a run reached the server: the shapes of its calls of
// save, update and complete. save and complete ask for the time once a call,
// update never; save writes with SETNX once a saga.
func flow(inside map[string]Inside, run Run) (shapes [3]Shape, err error) {
	sagas := inside["setnx"].Calls
	saves := inside["time"].Calls / 2 // and as many calls of complete
	updates := inside["evalsha"].Calls - inside["time"].Calls
	if sagas < 100 || saves < 1 || run.RoundTrips <= 0 || run.SagasPerS <= 0 {
		return shapes, errNoRun
	}
	each := Shape{
		Steps: run.Steps, Conns: 1, Pipeline: max(1, run.Calls/run.RoundTrips),
		Every: time.Duration(float64(time.Second) / (run.SagasPerS * run.RoundTrips)),
	}
	of := func(changes, calls float64) Shape {
		s := each
		s.Sagas = max(1, changes/calls)
		return s
	}
	shapes[0] = of(sagas, saves)
	shapes[1] = of(sagas*float64(run.Steps-1), max(1, updates))
	shapes[2] = shapes[0]
	return shapes, nil
}

// pacedWindow is longer than others: the server sleeps in most of it.
const pacedWindow = 40 * time.Millisecond

// Agree prices the calls that a run made between two looks, just after it.
func (b *Bench) Agree(ctx context.Context, before, after Look, run Run) (Agreement, error) {
	shapes, err := flow(ran(before.commands, after.commands), run)
	if err != nil {
		return Agreement{}, err
	}
	b.doing("pricing the calls of the run")
	var paced, hot [3]*cell
	for i, o := range operations(ours())[:3] {
		p, _ := probeOf(o, whole, shapes[i])
		if err := b.loadScript(p.script); err != nil {
			return Agreement{}, err
		}
		paced[i] = &cell{probe: p, samples: map[int]sample{}}
		paced[i].calls = int(max(leastCalls, p.Pipeline*float64(pacedWindow)/float64(p.Every)))
		p.Every = 0
		hot[i] = &cell{probe: p, samples: map[int]sample{}}
	}
	if err := b.repeatedly(ctx, append(paced[:], hot[:]...)); err != nil {
		return Agreement{}, err
	}
	sum := func(cells [3]*cell, cpu func(sample) float64) float64 {
		return sagaOf(run.Steps, cells[0].perSaga(cpu), cells[1].perSaga(cpu), cells[2].perSaga(cpu)).cpu
	}
	// A run tells the CPU of all threads, the ceiling is that of one.
	a := agreement(run, sum(paced, sample.allSaga), sum(hot, sample.coreSaga))
	a.SagasPerCall, a.CallsAtOnce, a.EveryUS = shapes[0].Sagas, shapes[0].Pipeline, float64(shapes[0].Every)/float64(time.Microsecond)
	b.agreements = append(b.agreements, a)
	return a, nil
}

// repeatedly measures cells outside of the rounds.
func (b *Bench) repeatedly(ctx context.Context, cells []*cell) error {
	const times = 9
	rounds := b.rounds
	defer func() { b.rounds = rounds }()
	for b.rounds = range times {
		for _, c := range cells {
			if err := b.measureCell(ctx, c); err != nil {
				return err
			}
			if c.failure != "" {
				return refused(c.failure)
			}
		}
	}
	return nil
}

func agreement(run Run, paced, hot float64) Agreement {
	a := Agreement{
		RunUS: run.CPUUS, PacedUS: paced, BackToBackUS: hot,
		AchievedPerS: run.SagasPerS, CeilingPerS: perCore(hot),
	}
	if run.CPUUS > 0 {
		a.Ratio = paced / run.CPUUS
	}
	if a.CeilingPerS > 0 {
		a.Share = a.AchievedPerS / a.CeilingPerS
	}
	return a
}
