package matrix

import (
	"cmp"

	"sagabench/bench/internal/redisops"
)

// OperationConfig returns what the values of a variant say of an operation, without servers.
func OperationConfig(values Values) redisops.Config {
	cfg := redisops.Default()
	cfg.Operation = cmp.Or(values[KeyOperation], cfg.Operation)
	cfg.Client = cmp.Or(values[KeyClient], cfg.Client)
	cfg.Clients = values.Int(KeyClients, cfg.Clients)
	cfg.Pipeline = values.Int(KeyPipeline, cfg.Pipeline)
	cfg.Payload = values.Int(KeyPayload, cfg.Payload)
	cfg.ManyKeys = values[KeyKeys] == "many"
	cfg.KeysPerRequest = values.Int(KeyKeysPerRequest, cfg.KeysPerRequest)
	cfg.Duration = values.Duration(KeyDuration, cfg.Duration)
	cfg.Warmup = values.Duration(KeyWarmup, cfg.Warmup)
	return cfg
}
