package server

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
	"sagabench/store"
)

// connected is a store with so many connections to a server.
type connected int

func (c connected) Connections() (int, time.Duration) { return int(c), 0 }

func TestFitOpenFiles_LowersTheConnections(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files, ofStore, conns, branchConns int

		wantConns, wantBranchConns, wantBranches int
		says                                     string
	}{
		"no limit":          {0, 16, 4096, 1024, 4096, 1024, 0, ""},
		"enough":            {20_000, 16, 4096, 1024, 4096, 1024, 20_000 - 64 - 16 - 32 - 4096, ""},
		"as many as needed": {64 + 16 + 32 + 5462, 16, 4096, 1024, 4096, 1024, 1366, ""},
		"one less":          {64 + 16 + 32 + 5461, 16, 4096, 1024, 4095, 1024, 1366, "needed=5574"},
		"a usual limit":     {1024, 16, 4096, 1024, 456, 342, 456, "limit=1024 needed=5574 max_conns=456 branch_conns=342"},
		"few branches":      {1024, 16, 4096, 100, 778, 100, 134, "max_conns=778"},
		"few clients":       {1024, 16, 100, 4096, 100, 609, 812, "branch_conns=609"},
		"an embedded store": {1024, 0, 4096, 1024, 336, 252, 336, "max_conns=336"},
		"embedded, enough":  {6558, 0, 4096, 1024, 4096, 1024, 1366, ""},
		"embedded, least":   {131, 0, 4096, 1024, 1, 1, 2, "max_conns=1"},
		"embedded, none":    {100, 0, 4096, 1024, 0, 0, 0, "100 files may be open, at least 131"},
		"hardly any":        {114, 16, 4096, 1024, 1, 1, 1, "max_conns=1"},
		"none":              {113, 16, 4096, 1024, 0, 0, 0, "113 files may be open, at least 114"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := DefaultConfig()
			cfg.MaxConns, cfg.BranchConns = tt.conns, tt.branchConns
			var st any
			if tt.ofStore > 0 {
				st = connected(tt.ofStore)
			}
			log := &testkit.Log{}
			got, branches, err := cfg.fitOpenFiles(tt.files, st, slog.New(slog.NewTextHandler(log, nil)))
			if tt.wantConns == 0 {
				require.ErrorIs(t, err, store.ErrInvalid)
				require.ErrorContains(t, err, tt.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, [3]int{tt.wantConns, tt.wantBranchConns, tt.wantBranches}, [3]int{got.MaxConns, got.BranchConns, branches})
			require.Contains(t, log.String(), tt.says)
			require.Equal(t, tt.says == "", log.String() == "")
		})
	}
}
