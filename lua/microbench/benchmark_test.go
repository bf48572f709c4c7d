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
	cfg := Default()
	cfg.URL, cfg.Due = labtest.Start(b, lab.Redis, lab.Config{}).URL(), nil
	bench := open(b, cfg)
	for _, o := range operations(lua.All()) {
		for _, s := range []Shape{base.of(1), base.of(16), base.of(64), {Steps: 50, Sagas: 16, Pipeline: base.Pipeline, Conns: connections}} {
			p, _ := probeOf(o, whole, s)
			require.NoError(b, bench.loadScript(p.script))
			b.Run(fmt.Sprintf("%s/steps=%d/sagas=%g", o.script.Name, s.Steps, s.Sagas), func(b *testing.B) { benchmark(b, bench, p) })
		}
	}
}

// benchmark drives b.N calls, in windows that keep the due indexes as they are.
func benchmark(b *testing.B, bench *Bench, p probe) {
	var sum sample
	for left := b.N; left > 0; {
		n := max(1, min(left, int(smallIndexes*most/p.Sagas)))
		s, err := bench.once(p, n)
		require.NoError(b, err)
		left -= n
		sum.took += s.took
		sum.cpu.all += s.cpu.all
		sum.sagas += s.sagas
		sum.in += s.in
	}
	b.ReportMetric(float64(sum.took.Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(sum.cpu.all/sum.sagas, "server_us/saga")
	b.ReportMetric(sum.in/sum.sagas, "bytes/saga")
}
