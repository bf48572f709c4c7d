package pebblestore

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sagabench/store"
)

func TestOpen_DirectoryInUse(t *testing.T) {
	t.Parallel()
	cfg := inTemp(t)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(cfg.Dir, link))
	s := open(t, cfg)
	for _, dir := range []string{cfg.Dir, link, cfg.Dir + "/."} {
		again := cfg
		again.Dir = dir
		_, err := Open(t.Context(), again)
		require.ErrorIs(t, err, store.ErrInUse)
		require.ErrorContains(t, err, s.cfg.Dir)
		oneLine(t, err)
	}
	must(t, s, advance("a", created))
	require.NoError(t, s.Close())
	open(t, cfg)
}

func TestOpen_DirectoryInUseByAnotherProcess(t *testing.T) {
	t.Parallel()
	cfg := inTemp(t)
	cfg.tune = small
	cmd, out := startChild(t, cfg.Dir, "a")
	require.True(t, out.Scan(), "the child has opened the store")
	_, err := Open(t.Context(), cfg)
	require.ErrorIs(t, err, store.ErrInUse)
	require.ErrorContains(t, err, cfg.Dir)
	oneLine(t, err)
	require.NoError(t, cmd.Process.Kill())
	for out.Scan() {
	}
	require.Error(t, cmd.Wait())
	open(t, cfg)
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	require.NotContains(t, err.Error(), "\n")
}

func TestOpen_Refuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, cfg *Config)
		is      error
		says    string
	}{
		"no directory": {
			func(_ *testing.T, cfg *Config) { cfg.Dir = "" }, nil, "no directory given",
		},
		"a negative retention": {
			func(_ *testing.T, cfg *Config) { cfg.Retention = -time.Second }, nil, "retention -1s",
		},
		"a file": {
			func(t *testing.T, cfg *Config) {
				cfg.Dir = filepath.Join(cfg.Dir, "file")
				require.NoError(t, os.WriteFile(cfg.Dir, nil, 0o600))
			}, syscall.ENOTDIR, "file",
		},
		"a directory with other files": {
			func(t *testing.T, cfg *Config) {
				require.NoError(t, os.WriteFile(filepath.Join(cfg.Dir, "thesis.doc"), nil, 0o600))
			}, store.ErrUnsafe, "thesis.doc",
		},
		"another program's pebble": {
			func(t *testing.T, cfg *Config) {
				db, err := pebble.Open(cfg.Dir, &pebble.Options{Logger: &logger{log: slog.New(slog.DiscardHandler)}})
				require.NoError(t, err)
				require.NoError(t, db.Close())
			}, store.ErrUnsafe, "no store of sagas",
		},
		"another layout": {
			func(t *testing.T, cfg *Config) {
				require.NoError(t, os.WriteFile(filepath.Join(cfg.Dir, formatFile), []byte("sagabench pebble store, layout 2\n"), 0o600))
			}, store.ErrUnsafe, "layout 2",
		},
		"a directory that may not be written": {
			func(_ *testing.T, cfg *Config) {
				cfg.fs = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if op.Kind == errorfs.OpLock {
						return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EACCES}
					}
					return nil
				}))
			}, fs.ErrPermission, "LOCK",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := inTemp(t)
			tt.prepare(t, &cfg)
			before := names(cfg.Dir)
			_, err := Open(t.Context(), cfg)
			require.ErrorContains(t, err, tt.says)
			oneLine(t, err)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
			require.NotErrorIs(t, err, store.ErrInUse)
			require.Equal(t, before, names(cfg.Dir), "nothing is written")
		})
	}
}

// names lists a directory, but for the lock.
func names(dir string) (list []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != "LOCK" {
			list = append(list, e.Name())
		}
	}
	return list
}

// A first Open that was cut short leaves nothing that the next one minds.
func TestOpen_AfterAFirstOpenThatFailed(t *testing.T) {
	t.Parallel()
	cfg := inTemp(t)
	bad := cfg
	bad.fs = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRename && strings.HasSuffix(op.Path, formatTemp) {
			return syscall.EIO
		}
		return nil
	}))
	_, err := Open(t.Context(), bad)
	require.ErrorIs(t, err, syscall.EIO)
	must(t, open(t, cfg), advance("a", created))
}

func TestOpen_ReadsWhatItWrote(t *testing.T) {
	t.Parallel()
	cfg := inTemp(t)
	s := open(t, cfg)
	var before []store.Record
	for i := range 20 {
		gid := "saga-" + string(rune('a'+i)) + "3"
		must(t, s, advance(gid, created))
		if i%2 == 0 {
			must(t, s, advance(gid, marked))
		}
		if i%4 == 0 {
			must(t, s, advance(gid, ended))
		}
		r, err := s.Get(t.Context(), gid)
		require.NoError(t, err)
		before = append(before, r)
	}
	require.NoError(t, s.Close())
	s = open(t, cfg)
	for _, want := range before {
		got, err := s.Get(t.Context(), want.GID)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	verify(t, s)
}

func TestSettings_SayWhatIsSet(t *testing.T) {
	t.Parallel()
	s := open(t, inTemp(t))
	settings, err := s.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, "pebble", settings.Driver)
	require.True(t, strings.HasPrefix(settings.Version, "v2"), settings.Version)
	require.Equal(t, store.D3, settings.Durability)
	require.Equal(t, "true", settings.Values["sync"])
	require.Equal(t, "1h0m0s", settings.Values["retention"])
	require.Equal(t, pebble.FormatNewest.String(), settings.Values["format"], "options.go names the newest")
}

func TestClose_AnswersErrClosedAfterwards(t *testing.T) {
	t.Parallel()
	s := open(t, inTemp(t))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err := s.Verify(t.Context())
	require.ErrorIs(t, err, store.ErrClosed)
	require.True(t, errors.Is(s.sweep(t.Context()), store.ErrClosed))
	require.Positive(t, s.Counters().Fsyncs)
}
