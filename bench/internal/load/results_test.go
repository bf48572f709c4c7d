package load

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
	"sagabench/store"
)

// The raw results of two load hosts, put together as vegeta report does with
// several files, say what our two results say.
func TestRun_RawResultsOfTwoHostsAgreeWithTheirResults(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s sagas
		var calls atomic.Int64
		both := bubbled(t, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Millisecond)
			switch calls.Add(1) % 10 {
			case 3:
				http.Error(w, "no", http.StatusServiceUnavailable)
			case 7:
				s.answer(w, store.StatusFailed)
			default:
				s.answer(w, store.StatusSucceeded)
			}
		})
		hosts := make([]Result, 2)
		dirs := make([]string, 2)
		ended := make(chan error)
		for i := range hosts {
			cfg := both
			cfg.Dir = filepath.Join(t.TempDir(), "result")
			cfg.Rate, cfg.Duration = Constant(float64(300+100*i)), time.Second
			dirs[i] = cfg.Dir
			go func() {
				var err error
				hosts[i], err = Run(t.Context(), cfg)
				ended <- err
			}()
		}
		require.NoError(t, errors.Join(<-ended, <-ended))

		var decoders []vegeta.Decoder
		for _, dir := range dirs {
			f, err := os.Open(filepath.Join(dir, result.FileResults))
			require.NoError(t, err)
			defer f.Close()
			decoders = append(decoders, vegeta.DecoderFor(f))
		}
		var m vegeta.Metrics
		decode := vegeta.NewRoundRobinDecoder(decoders...)
		for {
			var r vegeta.Result
			err := decode(&r)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			m.Add(&r)
		}
		m.Close()

		a, b := hosts[0], hosts[1]
		require.EqualValues(t, a.Requests+b.Requests, m.Requests)
		require.Equal(t, map[string]int{
			"200": int(a.Succeeded + b.Succeeded), "409": int(a.Failed + b.Failed), "503": int(a.Errors + b.Errors),
		}, m.StatusCodes)
		require.Positive(t, a.Failed+b.Failed)
		require.Positive(t, a.Errors+b.Errors)
		last := slices.MaxFunc(hosts, func(a, b Result) int { return a.Began.Add(a.Elapsed).Compare(b.Began.Add(b.Elapsed)) })
		require.WithinDuration(t, last.Began.Add(last.Elapsed), m.End, time.Millisecond)
		require.InEpsilon(t, *a.Load().OfferedPerS+*b.Load().OfferedPerS, m.Rate, 0.02)
		all := result.NewHistogram()
		all.Merge(a.Service)
		all.Merge(b.Service)
		require.GreaterOrEqual(t, m.Latencies.Max+time.Millisecond, time.Duration(all.Max())*time.Microsecond, "errors are in vegeta's alone")
	})
}
