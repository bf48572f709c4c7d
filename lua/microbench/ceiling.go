package microbench

// Ceiling is how many sagas a second one core of Redis carries when it does
// nothing but run their scripts and there is always a next call waiting.
type Ceiling struct {
	Steps    int     `json:"steps"`
	Sagas    float64 `json:"sagas"` // per call
	Pipeline float64 `json:"pipeline"`
	CPUUS    float64 `json:"cpu_us"`      // per saga, of the thread that runs commands
	PerS     float64 `json:"sagas_per_s"` // per core
	Calls    float64 `json:"calls"`       // of scripts per saga
	BytesIn  float64 `json:"bytes_in"`    // per saga
	BytesOut float64 `json:"bytes_out"`
}

// cost is of one saga's share of a call: CPU in µs, and bytes.
type cost struct{ cpu, in, out float64 }

func (c cost) plus(o cost, times float64) cost {
	return cost{c.cpu + o.cpu*times, c.in + o.in*times, c.out + o.out*times}
}

// sagaOf adds up a saga of so many steps that goes well: it is saved, marked after
// every step but the last, and ended with the last one's mark.
func sagaOf(steps int, save, update, complete cost) cost {
	return save.plus(update, float64(steps-1)).plus(complete, 1)
}

// perCore is how many fit into a second of one core.
func perCore(us float64) float64 {
	if us <= 0 {
		return 0
	}
	return 1e6 / us
}

// ceilings are those of every batch and pipeline that all three scripts were
// measured at.
func (b *Bench) ceilings() []Ceiling {
	var all []Ceiling
	add := func(s Shape) {
		var parts [3]cost
		for i, o := range operations(ours())[:3] {
			c := b.cellOf(o.key(whole, s))
			if c == nil || len(c.samples) == 0 {
				return
			}
			parts[i] = c.perSaga(sample.coreSaga)
		}
		sum := sagaOf(s.Steps, parts[0], parts[1], parts[2])
		all = append(all, Ceiling{
			Steps: s.Steps, Sagas: s.Sagas, Pipeline: s.Pipeline, CPUUS: sum.cpu, PerS: perCore(sum.cpu),
			Calls: float64(s.Steps+1) / s.Sagas, BytesIn: sum.in, BytesOut: sum.out,
		})
	}
	for _, sagas := range batches {
		s := base.of(sagas)
		for _, s.Pipeline = range pipelines {
			add(s)
		}
	}
	for _, sagas := range splitBatches {
		s := base.of(sagas)
		for _, s.Steps = range steps {
			if s.Steps != base.Steps {
				add(s)
			}
		}
	}
	return all
}

// Classic is the pattern of JSON records and scripts sent as text, beside ours.
type Classic struct {
	Pipeline float64 `json:"pipeline"`
	CPUUS    float64 `json:"cpu_us"` // per saga
	PerS     float64 `json:"sagas_per_s"`
	BytesIn  float64 `json:"bytes_in"`
	BytesOut float64 `json:"bytes_out"`
	Calls    float64 `json:"calls"`
	// Ratios are how many times as much CPU it takes as ours, by how many sagas a
	// call of ours takes, at the same pipeline.
	Ratios map[string]float64 `json:"ratio_to_ours"`
}

// classic adds up its four calls.
func (b *Bench) classic(ceilings []Ceiling) []Classic {
	var all []Classic
	for _, pipeline := range pipelines {
		var sum cost
		complete := true
		for i, p := range classicProbes() {
			p.Key.Sagas, p.Key.Conns, p.Key.Pipeline = 1, connections, pipeline
			c := b.cellOf(p.Key)
			if c == nil || len(c.samples) == 0 {
				complete = false
				break
			}
			sum = sum.plus(c.perSaga(sample.coreSaga), classicTimes[i])
		}
		if !complete {
			continue
		}
		one := Classic{
			Pipeline: pipeline, CPUUS: sum.cpu, PerS: perCore(sum.cpu), BytesIn: sum.in, BytesOut: sum.out,
			Calls: 4, Ratios: map[string]float64{},
		}
		for _, c := range ceilings {
			if c.Steps == classicSteps && c.Pipeline == pipeline {
				one.Ratios[short(c.Sagas)] = sum.cpu / c.CPUUS
			}
		}
		all = append(all, one)
	}
	return all
}
