// Package environment describes this machine and this program, for results.
package environment

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"

	"sagabench/bench/internal/cgroup"
	"sagabench/bench/internal/result"
)

const (
	unknown = "unknown"
	module  = "sagabench" // ours; a program run from its files does not know it
)

// Describe returns the machine, and the versions of what takes part.
func Describe(ctx context.Context) result.Environment {
	e := result.Environment{
		CPU:      unknown,
		Cores:    runtime.NumCPU(),
		Kernel:   unknown,
		Go:       runtime.Version(),
		Governor: governor(),
		HostID:   hostID(),
		Versions: versions(),
	}
	if group, err := cgroup.Of(os.Getpid()); err == nil {
		e.CPUQuota, e.MemoryLimit = group.Quota, group.Memory
	}
	if infos, err := cpu.InfoWithContext(ctx); err == nil && len(infos) > 0 && infos[0].ModelName != "" {
		e.CPU = infos[0].ModelName
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		e.Memory = int64(m.Total)
	}
	if kernel, err := host.KernelVersionWithContext(ctx); err == nil {
		e.Kernel = runtime.GOOS + " " + kernel
	}
	return e
}

// BootID returns the kernel's id of this boot. All programs of a machine have it in common,
// those in containers and network namespaces, too. It is empty outside of Linux.
func BootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

func hostID() string {
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return ""
	}
	return BootID() + "/" + network
}

func governor() *string {
	text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	if err != nil {
		return nil
	}
	name := strings.TrimSpace(string(text))
	return &name
}

// versions returns those of the modules that load and carry sagas.
func versions() map[string]string {
	names := map[string]string{
		"github.com/tsenart/vegeta/v12":    "vegeta",
		"github.com/redis/go-redis/v9":     "go-redis",
		"github.com/cockroachdb/pebble/v2": "pebble",
		"github.com/go-sql-driver/mysql":   "go-sql-driver/mysql",
		"github.com/jackc/pgx/v5":          "pgx",
	}
	found := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if name, ok := names[module.Path]; ok {
				found[name] = module.Version
			}
		}
	}
	return found
}

const dirty = "+dirty"

// Commit returns the commit that this program was built from, with "+dirty" after it if
// files were changed since; nil if it is unknown. `go run` does not record it, so git is
// asked if the program runs inside the module.
func Commit(ctx context.Context) *string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if revision := settings["vcs.revision"]; revision != "" {
		if settings["vcs.modified"] == "true" {
			revision += dirty
		}
		return &revision
	}
	return commitByGit(ctx, module)
}

func commitByGit(ctx context.Context, module string) *string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil
	}
	// The working directory may be in another repository.
	mod, err := os.ReadFile(filepath.Join(top, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+module+"\n") {
		return nil
	}
	commit, err := git("describe", "--always", "--exclude=*", "--abbrev=40", "--dirty="+dirty)
	if err != nil {
		return nil
	}
	return &commit
}
