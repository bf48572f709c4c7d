package redisops

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Config says what to measure, and where.
type Config struct {
	URLs []string // redis:// of one server, or of all masters of a Redis Cluster
	// PIDs are the processes of the servers, in the order of the URLs, if they were started
	// for this measurement: redis-benchmark then shows their password in the list of processes.
	PIDs []int

	Operation string // one of Operations
	Client    string // one of Clients
	Clients   int    // concurrent callers; of redis-benchmark, connections
	Pipeline  int    // times KeysPerRequest: commands of a request; more than 1 needs a client with a pipeline
	Payload   int    // bytes of a value; of HGETALL, of each field's value
	ManyKeys  bool   // keys at random out of 100,000 (hashes: 16), else one

	// KeysPerRequest is 1, or an even number of commands, each with a key of its own: one
	// half of the keys are the same in every request, the others at random out of many.
	// Clients without a pipeline send one command after the other.
	KeysPerRequest int

	Duration, Warmup time.Duration

	keys int // of ManyKeys, in tests; 0: 100,000
}

// Default measures GET of one key by 50 callers.
func Default() Config {
	return Config{
		URLs: []string{"redis://127.0.0.1:6379"}, Operation: "GET", Client: clientGoRedis,
		Clients: 50, Pipeline: 1, Payload: 256, KeysPerRequest: 1, Duration: 3 * time.Second, Warmup: time.Second,
	}
}

// The limits of a Config.
const (
	MaxClients        = 10_000
	MaxPipeline       = 10_000
	MaxPayload        = 1 << 20
	MaxKeysPerRequest = 100
	MinDuration       = 100 * time.Millisecond

	maxBenchmarkPayload = 64 << 10 // an argument of a program has at most 128 KiB
)

func (c Config) check() error {
	between := func(name string, x, least, most int) error {
		if x < least || x > most {
			return fmt.Errorf("%s: %d, must be %d to %d", name, x, least, most)
		}
		return nil
	}
	if err := errors.Join(
		between("clients", c.Clients, 1, MaxClients),
		between("pipeline", c.Pipeline, 1, MaxPipeline),
		between("payload", c.Payload, 0, MaxPayload),
		between("keys_per_request", c.KeysPerRequest, 1, MaxKeysPerRequest),
	); err != nil {
		return err
	}
	switch {
	case len(c.URLs) == 0:
		return errors.New("urls: there is none")
	case len(c.PIDs) > 0 && len(c.PIDs) != len(c.URLs):
		return fmt.Errorf("pids: %d of %d servers", len(c.PIDs), len(c.URLs))
	case c.Duration < MinDuration:
		return fmt.Errorf("duration: %v, at least %v", c.Duration, MinDuration)
	case c.Warmup < 0:
		return fmt.Errorf("warmup: %v, at least 0", c.Warmup)
	case operations[c.Operation] == nil:
		return fmt.Errorf("operation: %q, want one of %v", c.Operation, Operations())
	case !slices.Contains(Clients(), c.Client):
		return fmt.Errorf("client: %q, want one of %v", c.Client, Clients())
	case c.KeysPerRequest > 1 && (c.KeysPerRequest%2 == 1 || !c.ManyKeys):
		return fmt.Errorf("keys_per_request: %d, must be 1, or even and with many keys", c.KeysPerRequest)
	case c.Operation == opLPop && c.ManyKeys:
		return errors.New("operation: LPOP needs one key: lists of many keys would run empty")
	case c.Pipeline > 1 && !pipelines(c.Client):
		return fmt.Errorf("pipeline: %d, must be 1: client %s has no pipeline", c.Pipeline, c.Client)
	case c.Client != ClientRedisBenchmark:
		return nil
	case len(c.URLs) > 1, c.KeysPerRequest > 1:
		return errors.New("client: redis-benchmark measures one server, and requests of one key")
	case c.Payload > maxBenchmarkPayload:
		return fmt.Errorf("payload: %d, must be 0 to %d with redis-benchmark", c.Payload, maxBenchmarkPayload)
	}
	return nil
}
