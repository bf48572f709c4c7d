package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

func TestRun_ErrorsAreCountedByKind(t *testing.T) {
	t.Parallel()
	kinds := map[string]http.HandlerFunc{
		"http 500": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) },
		"http 302": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", "/"); w.WriteHeader(302) },
		"http 409": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"message":"other"}`, http.StatusConflict)
		},
		kindNoResult: func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"dtm_result":"FAILURE","gid":"a"}`)
		},
		kindClosed: func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		kindReset: func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		},
		kindBadHTTP: func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			_, _ = c.Write([]byte("220 mail.example.com ready\r\n\r\n"))
			_ = c.Close()
		},
		kindTimeout: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		kindClosed + ", in the body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"dtm_result":`)
		},
		kindTimeout + ", in the body": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"dtm_result":`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	}
	for name, handler := range kinds {
		t.Run(name, func(t *testing.T) {
			kind, _, _ := strings.Cut(name, ",")
			if kind == kindReset { // connections in memory are not reset
				t.Parallel()
				ctx, interrupt := context.WithCancel(t.Context())
				requireOneError(ctx, t, kind, handler, interrupt, func(h http.HandlerFunc) Config {
					cfg := config(t, serve(t, h))
					cfg.Duration, cfg.Grace = time.Hour, time.Hour
					return cfg
				})
				return
			}
			inBubble(t, func(t *testing.T) {
				requireOneError(t.Context(), t, kind, handler, func() {}, func(h http.HandlerFunc) Config { return bubbled(t, h) })
			})
		})
	}
}

// requireOneError sends 25 requests, the third of which fails.
func requireOneError(ctx context.Context, t *testing.T, kind string, fail http.HandlerFunc, enough func(), serve func(http.HandlerFunc) Config) {
	t.Helper()
	var s sagas
	var n atomic.Int64
	cfg := serve(func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 3:
			fail(w, r)
			return
		case 25:
			enough()
		}
		s.answer(w, store.StatusSucceeded)
	})
	cfg.Rate = Constant(50)
	cfg.Duration = max(cfg.Duration, 500*time.Millisecond)
	res, err := Run(ctx, cfg)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{kind: 1}, res.ErrorsByKind)
	require.EqualValues(t, 1, res.Errors)
	require.Equal(t, n.Load(), res.Requests, "none is sent twice")
	require.EqualValues(t, res.Requests-1, res.Sagas())
	require.EqualValues(t, res.Requests-1, res.Latency.TotalCount(), "an error has no latency")
}

// unreachable refuses connections, each in some time.
func unreachable(context.Context, string, string) (net.Conn, error) {
	time.Sleep(10 * time.Millisecond)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

func TestRun_UnreachableTargetFailsInTheWarmUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg := config(t, "http://a/bench/saga")
		cfg.dial, cfg.Warmup = unreachable, 500*time.Millisecond
		_, err := Run(t.Context(), cfg)
		require.ErrorContains(t, err, "(connection refused)")
		require.NoDirExists(t, cfg.Dir)
	})
}

func TestRun_UnreachableTargetLeavesADirectoryThatWasThere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg := config(t, "http://a/bench/saga")
		cfg.dial, cfg.Warmup = unreachable, 500*time.Millisecond
		require.NoError(t, os.Mkdir(cfg.Dir, 0o755))
		_, err := Run(t.Context(), cfg)
		require.Error(t, err)
		left, err := os.ReadDir(cfg.Dir)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

func TestRun_UntrustedCertificateIsAKindOfItsOwn(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	cfg := config(t, server.URL)
	cfg.Rate, cfg.Duration = Constant(50), 3*time.Second
	res, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Positive(t, res.Requests)
	require.Equal(t, map[string]int64{kindTLS: res.Requests}, res.ErrorsByKind)
}

func TestRun_ServerThatComesBackIsUsedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s sagas
		var n atomic.Int64
		cfg := bubbled(t, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(10 * time.Millisecond)
			if at := n.Add(1); at > 20 && at <= 30 {
				panic(http.ErrAbortHandler)
			}
			s.answer(w, store.StatusSucceeded)
		})
		cfg.Duration = time.Second
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.EqualValues(t, 10, res.Errors)
		require.EqualValues(t, 10, res.Intervals[0].Errors)
		require.Equal(t, n.Load(), res.Requests, "none is sent twice")
		require.Greater(t, res.Succeeded, int64(20), "some of them afterwards")
		require.Equal(t, s.told, readAll(t, cfg.Dir))
	})
}

func TestRun_BeginErrorEndsTheRun(t *testing.T) {
	t.Parallel()
	var s sagas
	cfg := config(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { s.answer(w, store.StatusSucceeded) }))
	broken := errors.New("no probe")
	cfg.Begin = func(context.Context) error { return broken }
	res, err := Run(t.Context(), cfg)
	require.ErrorIs(t, err, broken)
	require.NotEmpty(t, res.Incomplete)
	require.Zero(t, s.n.Load())
}

func TestRun_WrongConfigIsRefused(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Config){
		"no target":         func(c *Config) { c.Targets = nil },
		"ftp://x":           func(c *Config) { c.Targets = []Target{{URL: "ftp://x"}} },
		"password":          func(c *Config) { c.Targets = []Target{{URL: "http://user:topsecret@h"}} },
		"missing ']'":       func(c *Config) { c.Targets = []Target{{URL: "http://user:topsecret@[h"}} },
		"no gid to replace": func(c *Config) { c.Targets[0].Submission = []byte(`{"gid":"g"}`) },
		"some without": func(c *Config) {
			c.Targets = []Target{{URL: "http://h", Submission: []byte(GIDPlaceholder)}, {URL: "http://h"}}
		},
		"rate -1":       func(c *Config) { c.Rate = Constant(-1) },
		"in flight: 0":  func(c *Config) { c.InFlight = 0 },
		"max in flight": func(c *Config) { c.Rate, c.MaxInFlight = Constant(1), 0 },
		"duration 0s":   func(c *Config) { c.Duration = 0 },
		"warm-up -1s":   func(c *Config) { c.Warmup = -time.Second },
		"timeout 0s":    func(c *Config) { c.Timeout = 0 },
	} {
		cfg := config(t, "http://127.0.0.1:1")
		spoil(&cfg)
		_, err := Run(t.Context(), cfg)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "topsecret")
		require.NoDirExists(t, cfg.Dir)
	}
}
