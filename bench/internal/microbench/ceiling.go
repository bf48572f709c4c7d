package microbench

import (
	"maps"
	"slices"
	"strconv"

	"sagabench/lua"
)

// SagaPrice is what a saga costs that succeeds.
type SagaPrice struct {
	Pipeline int      `json:"pipeline"`
	CPUUS    Estimate `json:"cpu_us"`      // of the main thread
	PerS     Estimate `json:"sagas_per_s"` // that one core can carry
	Calls    float64  `json:"calls"`       // of scripts
	BytesIn  float64  `json:"bytes_in"`
	BytesOut float64  `json:"bytes_out"`
}

// Ceiling is how many sagas a second one core of Redis can carry if it does nothing
// but run their scripts and another call is always waiting.
type Ceiling struct {
	Steps int `json:"steps"`
	Sagas int `json:"sagas"` // per call
	SagaPrice
}

// Baseline is the older pattern of JSON records, see baselineCases, beside ours.
type Baseline struct {
	SagaPrice
	// Ratios are its CPU divided by that of our scripts at the same pipeline, by the
	// sagas per call of ours.
	Ratios map[string]Estimate `json:"ratio_to_ours"`
}

// callCount is how often a saga makes a kind of call.
type callCount struct {
	key   Key
	times int
}

// coreUS returns the CPU of the main thread for all calls of a saga, in µs, by round, of the
// rounds that measured all of them.
func (b *bench) coreUS(calls []callCount) map[int]float64 {
	all := map[int]float64{}
	for round := range b.byKey[calls[0].key].samples {
		sum, complete := 0.0, true
		for _, call := range calls {
			s, measured := b.byKey[call.key].samples[round]
			complete = complete && measured
			sum += float64(call.times) / float64(call.key.Sagas) * s.corePerCall()
		}
		if complete {
			all[round] = sum
		}
	}
	return all
}

// sagaPrice adds up the calls of a saga. ok is false if one of them was not measured.
func (b *bench) sagaPrice(calls []callCount) (p SagaPrice, ok bool) {
	for _, call := range calls {
		c := b.byKey[call.key]
		if !c.measured() {
			return p, false
		}
		n := float64(call.times) / float64(call.key.Sagas)
		p.Pipeline = call.key.Pipeline
		p.Calls += n
		p.BytesIn += n * c.median(sample.inPerCall)
		p.BytesOut += n * c.median(sample.outPerCall)
	}
	cpu := estimate(slices.Collect(maps.Values(b.coreUS(calls))), usual)
	if cpu == nil {
		return p, false
	}
	p.CPUUS = *cpu
	if cpu.Low > 0 {
		p.PerS = Estimate{Median: usPerS / cpu.Median, Low: usPerS / cpu.High, High: usPerS / cpu.Low, N: cpu.N}
	}
	return p, true
}

// sagaCalls returns the calls of a saga that succeeds: it is saved, updated after every
// step but the last, and completed.
func sagaCalls(s Shape) []callCount {
	return []callCount{
		{Key{Case: lua.Save.Name, Shape: s}, 1},
		{Key{Case: lua.Update.Name, Shape: s}, s.Steps - 1},
		{Key{Case: lua.Complete.Name, Shape: s}, 1},
	}
}

// ceilings returns one for every shape with all scripts of a saga measured.
func (b *bench) ceilings() []Ceiling {
	all := []Ceiling{}
	shapes := batchShapes()
	for _, sagas := range detailedBatches {
		for _, s := range sizeShapes(sagas, nil) {
			if s.Steps != base.Steps {
				shapes = append(shapes, s)
			}
		}
	}
	for _, s := range shapes {
		if price, ok := b.sagaPrice(sagaCalls(s)); ok {
			all = append(all, Ceiling{Steps: s.Steps, Sagas: s.Sagas, SagaPrice: price})
		}
	}
	return all
}

// baselines returns one for every pipeline that all its scripts were measured at.
func (b *bench) baselines(ceilings []Ceiling) []Baseline {
	all := []Baseline{}
	for _, pipeline := range pipelines {
		price, ok := b.sagaPrice(baselineCalls(pipeline))
		if !ok {
			continue
		}
		one := Baseline{SagaPrice: price, Ratios: map[string]Estimate{}}
		theirs := b.coreUS(baselineCalls(pipeline))
		for _, c := range ceilings {
			if c.Steps == baselineSteps && c.Pipeline == pipeline {
				var ratios []float64
				for round, us := range b.coreUS(sagaCalls(base.with(c.Sagas, pipeline))) {
					if old, measured := theirs[round]; measured && us > 0 {
						ratios = append(ratios, old/us)
					}
				}
				if ratio := estimate(ratios, usual); ratio != nil {
					one.Ratios[strconv.Itoa(c.Sagas)] = *ratio
				}
			}
		}
		all = append(all, one)
	}
	return all
}
