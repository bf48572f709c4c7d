package cli

import (
	"testing"

	"github.com/shirou/gopsutil/v4/mem"
	"github.com/stretchr/testify/require"

	"sagabench/internal/race"
)

// memoryFactor is what a bound of a process's memory is multiplied by: the race detector keeps
// several bytes for each of the program's.
func memoryFactor() float64 {
	if race.Enabled {
		return 5
	}
	return 1
}

func TestServe_StaysWithinTheMemoryThereIs(t *testing.T) {
	t.Parallel()
	machine, err := mem.VirtualMemory()
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		env            []string
		least, most    float64 // of the memory limit
		collectPercent float64
	}{
		"as the machine allows": {nil, 64 << 20, 0.9 * float64(machine.Total), 100},
		"as it is told":         {[]string{"GOMEMLIMIT=300MiB", "GOGC=50"}, 300 << 20, 300 << 20, 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newProgram(t, tt.env...).start("coordinator", "pebble", "--listen", "127.0.0.1:0")
			limit, err := metric(t.Context(), s.url, "go_gc_gomemlimit_bytes")
			require.NoError(t, err)
			require.GreaterOrEqual(t, limit, tt.least)
			require.LessOrEqual(t, limit, tt.most)
			percent, err := metric(t.Context(), s.url, "go_gc_gogc_percent")
			require.NoError(t, err)
			require.Equal(t, tt.collectPercent, percent)
			resident, err := metric(t.Context(), s.url, "process_resident_memory_bytes")
			require.NoError(t, err)
			require.Less(t, resident, memoryFactor()*100e6, "the ballast takes no memory")
		})
	}
}
