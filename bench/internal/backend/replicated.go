package backend

import (
	"context"
	"errors"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/sample"
)

// withReplicas samples a primary, the first, and its replicas. As in a Redis Cluster, what
// the servers use is the sum over all. What clients send, receive and store is that of the
// primary: a replica gets it from its primary.
type withReplicas []sampled

// sampled is the sampler of one server.
type sampled interface {
	sample.Store
	base() *sampler
}

func (s *sampler) base() *sampler { return s }

// openReplicated samples a primary and its replicas.
func (b backend) openReplicated(ctx context.Context, server Server) (sample.Store, error) {
	var all withReplicas
	urls := append([]string{server.URL}, server.Replicas...)
	for i, url := range urls {
		own := server
		own.URL = url
		if len(server.PIDs) == len(urls) {
			own.PIDs = server.PIDs[i : i+1]
		}
		one, err := b.open(ctx, own)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, one.(sampled)) // only a Redis Cluster is another one, and has replicas of its own
	}
	return all, nil
}

func (w withReplicas) each(do func(sampled) error) (err error) {
	for _, s := range w {
		err = errors.Join(err, do(s))
	}
	return err
}

func (w withReplicas) Begin(ctx context.Context) error {
	return w.each(func(s sampled) error { return s.Begin(ctx) })
}

func (w withReplicas) End(ctx context.Context) error {
	return w.each(func(s sampled) error { return s.End(ctx) })
}

func (w withReplicas) Close() error { return w.each(sampled.Close) }

func (w withReplicas) CPU(ctx context.Context) (*float64, error) {
	sum, known := 0.0, true
	err := w.each(func(s sampled) error {
		used, err := s.CPU(ctx)
		if used == nil {
			known = false
		} else {
			sum += *used
		}
		return err
	})
	if err != nil || !known {
		return nil, err
	}
	return &sum, nil
}

func (w withReplicas) PIDs() (all []int) {
	for _, s := range w {
		of := s.PIDs()
		if of == nil {
			return nil
		}
		all = append(all, of...)
	}
	return all
}

func (w withReplicas) AddTo(u *sample.Usage) {
	var all []sample.Usage
	for i, s := range w {
		of := s.base()
		if of.before == nil || of.after == nil {
			return // Begin or End returned why
		}
		name := ""
		if i > 0 {
			of.before.remove(masterKeys)
			of.after.remove(masterKeys)
			name = "replica: "
		}
		one := sample.Usage{Elapsed: u.Elapsed}
		s.AddTo(&one)
		for _, why := range one.Failures {
			u.Failures = append(u.Failures, name+why)
		}
		all = append(all, one)
	}
	u.Resources.StoreOneCore = all[0].Resources.StoreOneCore
	if cpu := all[0].Total.StoreCPUUS; cpu != nil && u.Elapsed > 0 {
		cores := *cpu / float64(u.Elapsed.Microseconds())
		u.Resources.StorePrimaryCores = &cores
	}
	combine(result.CostFields, &u.Total, all, all[:1], func(u sample.Usage) result.Cost { return u.Total })
	combine(result.ResourceFields, &u.Resources, all, all[:1], func(u sample.Usage) result.Resources { return u.Resources })
}
