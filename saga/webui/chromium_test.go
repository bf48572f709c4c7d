package webui

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// browser is a headless Chromium with one page, spoken to in its DevTools
// protocol through a pair of pipes.
type browser struct {
	t       testing.TB
	in      *os.File
	out     *bufio.Reader
	session string
	last    int
	events  []event
}

type event struct {
	Method string
	Params json.RawMessage
}

// sitesName is a name under which Chromium finds this machine. Unlike its
// address, it is no place that browsers trust in particular.
const sitesName = "sagas.test"

// startChromium fails the test where there is none: a test that skips shows
// nothing.
func startChromium(t testing.TB) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		require.FailNow(t, "chromium is not installed: make deps installs it on Debian and Ubuntu; elsewhere: brew install --cask chromium")
	}
	theirIn, ourOut, err := os.Pipe()
	require.NoError(t, err)
	ourIn, theirOut, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(path, "--headless", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(),
		"--no-sandbox", // which root cannot have; it shows nothing but our page
		"--host-resolver-rules=MAP "+sitesName+" 127.0.0.1", "--no-proxy-server",
		"--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-sync",
		"--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // file descriptors 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	theirIn.Close()
	theirOut.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its processes with it
		_ = cmd.Wait()
		ourIn.Close()
		ourOut.Close()
	})
	require.NoError(t, ourIn.SetReadDeadline(time.Now().Add(2*time.Minute)))
	b := &browser{t: t, in: ourOut, out: bufio.NewReader(ourIn)}

	var target struct{ TargetID string }
	b.call(&target, "Target.createTarget", map[string]any{"url": "about:blank"})
	var attached struct{ SessionID string }
	b.call(&attached, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Audits", "Network"} {
		b.call(nil, domain+".enable", nil)
	}
	return b
}

// call asks Chromium to do something, and waits until it has.
func (b *browser) call(result any, method string, params map[string]any) {
	b.t.Helper()
	b.last++
	request := map[string]any{"id": b.last, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	require.NoError(b.t, err)
	_, err = b.in.Write(append(text, 0))
	require.NoError(b.t, err)
	for {
		id, answer := b.read()
		if id != b.last {
			continue
		}
		if result != nil {
			require.NoError(b.t, json.Unmarshal(answer, result), string(answer))
		}
		return
	}
}

// read takes the next answer, or keeps an event and gives 0.
func (b *browser) read() (id int, result json.RawMessage) {
	b.t.Helper()
	text, err := b.out.ReadBytes(0)
	require.NoError(b.t, err, "chromium does not answer")
	var message struct {
		event
		ID     int
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	require.NoError(b.t, json.Unmarshal(text[:len(text)-1], &message), string(text))
	require.Nil(b.t, message.Error, string(text))
	if message.ID == 0 {
		b.events = append(b.events, message.event)
	}
	return message.ID, message.Result
}

// await waits for an event that comes after those that were seen.
func (b *browser) await(method string, seen int) {
	b.t.Helper()
	for !slices.ContainsFunc(b.events[seen:], func(e event) bool { return e.Method == method }) {
		b.read()
	}
}

// load does what leads to another page, and waits until that is there.
func (b *browser) load(do func()) {
	b.t.Helper()
	seen := len(b.events)
	do()
	b.await("Page.loadEventFired", seen)
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.load(func() { b.call(nil, "Page.navigate", map[string]any{"url": url}) })
}

// look sets the colour scheme and the size of the page.
func (b *browser) look(scheme string, width, height int) {
	b.t.Helper()
	b.call(nil, "Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	})
	b.call(nil, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
	})
}

// eval runs JavaScript in the page, which the page itself may not.
func (b *browser) eval(result any, script string) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call(&answer, "Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true})
	require.Empty(b.t, string(answer.ExceptionDetails))
	if result != nil {
		require.NoError(b.t, json.Unmarshal(answer.Result.Value, result), script)
	}
}

// press clicks what the selector finds.
func (b *browser) press(selector string) {
	b.t.Helper()
	b.eval(nil, fmt.Sprintf(`document.querySelector(%q).click()`, selector))
}

// text is what can be read on the page.
func (b *browser) text() (text string) {
	b.t.Helper()
	b.eval(&text, `document.body.innerText`)
	return text
}

// screenshot is the whole page as a PNG.
func (b *browser) screenshot() []byte {
	b.t.Helper()
	var shot struct{ Data string }
	b.call(&shot, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true})
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	return png
}

// complaints are what the page made Chromium say: errors, violations of the
// policy, requests that failed.
func (b *browser) complaints() (said []string) {
	for _, e := range b.events {
		if strings.Contains(string(e.Params), "NavigationEntryMarkedSkippable") {
			continue // it noticed that no person presses our buttons
		}
		switch e.Method {
		case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Audits.issueAdded", "Network.loadingFailed":
			said = append(said, e.Method+" "+strings.TrimSpace(string(e.Params)))
		}
	}
	return said
}
