package microbench

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/lua"
)

// BenchmarkScript prices each script for benchstat. ns/op is the time of a call
// over the wire; what to look at is the server's CPU.
func BenchmarkScript(b *testing.B) {
	cfg := DefaultConfig()
	cfg.DueIndexes = nil
	measured := openBench(b, cfg, labtest.Start(b, lab.Redis, lab.Config{}).URL())
	for _, script := range lua.All() {
		for _, s := range []Shape{base.batch(1), base.batch(16), base.batch(64), {Steps: 50, Sagas: 16, Pipeline: base.Pipeline, Conns: connections}} {
			c := newCase(operationOf(script), whole, s)
			require.NoError(b, measured.loadScript(b.Context(), script))
			b.Run(fmt.Sprintf("%s/steps=%d/sagas=%d", script.Name, s.Steps, s.Sagas), func(b *testing.B) { benchmark(b, measured, c) })
		}
	}
}

// benchmark makes b.N calls, in windows that keep the due indexes short.
func benchmark(b *testing.B, measured *bench, c *callCase) {
	var sum sample
	for left := b.N; left > 0; {
		n := max(1, min(left, smallIndexes*maxAdded/c.Sagas))
		s, err := measured.window(b.Context(), c, n)
		require.NoError(b, err)
		left -= n
		sum.duration += s.duration
		sum.cpu.all += s.cpu.all
		sum.sagas += s.sagas
		sum.in += s.in
	}
	b.ReportMetric(float64(sum.duration.Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(sum.cpu.all/sum.sagas, "server_us/saga")
	b.ReportMetric(sum.in/sum.sagas, "bytes/saga")
}
