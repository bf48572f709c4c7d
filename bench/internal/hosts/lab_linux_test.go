package hosts

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What make lab prints leads to a host, and Ctrl-C ends it all.
func TestKeepUp_SaysHowToGetToItsHosts(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces require root")
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	lab, says := exec.Command(exe, "-up"), &output{}
	lab.Stdout, lab.Stderr = says, says
	require.NoError(t, lab.Start())
	t.Cleanup(func() { _, _ = lab.Process.Kill(), lab.Wait() })
	require.Eventually(t, func() bool { return strings.Contains(says.String(), "Ctrl-C") }, 2*time.Minute, 10*time.Millisecond, says)
	app1 := regexp.MustCompile(`(?m)^ +app1 +10\.0\.0\.2 +(.* )bash$`).FindStringSubmatch(says.String())
	require.Len(t, app1, 2, says)

	inside, err := exec.Command("sh", "-c", app1[1]+`sh -c 'cat /proc/sys/kernel/hostname go.mod; redis-cli -h store ping'`).CombinedOutput()
	require.NoError(t, err, string(inside))
	require.Regexp(t, `(?s)^app1\nmodule sagabench\n.*\nPONG\n$`, string(inside))

	require.NoError(t, lab.Process.Signal(os.Interrupt))
	require.NoError(t, lab.Wait(), says)
	_, err = exec.Command("sh", "-c", app1[1]+"true").CombinedOutput()
	require.Error(t, err, "the host is gone")
}
