package webui

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/race"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/store"
)

// The page as people see it: in both colour schemes, on a desk and on a phone.
// go test -artifacts keeps the pictures.
func TestUI_InABrowser(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	at := start(t, testkit.OpenPebble(t), theToken)
	at.fill()
	b := startChromium(t)
	base := strings.Replace(at.url, "127.0.0.1", sitesName, 1)

	b.look("light", 1280, 900)
	b.open(base + "/ui/sagas/held-up")
	require.Contains(t, b.text(), "Token of the server")
	pictures(t, b, "login")
	b.logIn(theToken)
	require.Contains(t, b.text(), "Saga held-up", "the login leads on")

	for _, p := range []struct{ name, path, says string }{
		{"overview", "/ui", "No saga waits"},
		{"held", "/ui/sagas/held-up", "1 failed attempt"},
		{"failed", "/ui/sagas/failed", "Aborted: step 3"},
		{"list", "/ui/sagas?status=succeed", "More"},
		{"problem", "/ui/sagas/nowhere", "Not Found"},
	} {
		b.open(base + p.path)
		if p.name == "overview" {
			require.NotContains(t, b.text(), p.says)
		} else {
			require.Contains(t, b.text(), p.says)
		}
		pictures(t, b, p.name)
	}

	// The one complaint there may be: of the page that was not there.
	complaints := b.complaints()
	for _, c := range complaints {
		require.Contains(t, c, "404 (Not Found)", complaints)
	}
}

func TestUI_InABrowser_ButtonsWork(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	at := start(t, testkit.OpenPebble(t), theToken)
	at.fill()
	b := startChromium(t)
	base := strings.Replace(at.url, "127.0.0.1", sitesName, 1)
	b.open(base + "/ui")
	b.load(func() {
		b.eval(nil, `document.querySelector("#token").value = "wrong-wrong-wrong"`)
		b.press(".login button")
	})
	require.Contains(t, b.text(), "not the token")
	b.logIn(theToken)
	require.Contains(t, b.text(), "Waiting for a branch")

	b.load(func() { // find
		b.eval(nil, `document.querySelector("#gid").value = "held-up"`)
		b.press("header form button")
	})
	b.load(func() { b.press("form[action$=retry] button") })
	require.Contains(t, b.text(), "The retry is due now")
	at.wait("held-up", func(i saga.Info) bool { return i.Owner == "" && i.State.Retries[0].Tries == 2 })
	b.load(func() {
		b.press("summary")
		b.press("form[action$=abort] button")
	})
	require.Contains(t, b.text(), "The saga is aborting")
	at.wait("held-up", func(i saga.Info) bool { return i.Status == store.StatusFailed })
	b.open(base + "/ui/sagas/held-up")
	require.Contains(t, b.text(), "by request, on the page")
	b.load(func() { b.press("form[action$=logout] button") })
	require.Contains(t, b.text(), "Token of the server")
	b.open(base + "/ui")
	require.Contains(t, b.text(), "Token of the server")
	for _, c := range b.complaints() {
		require.Contains(t, c, "401 (Unauthorized)", "of the wrong token")
	}

	// What the policy is for: nothing that got into the page would run.
	b.eval(nil, `document.body.insertAdjacentHTML("beforeend", '<img src="data:," onerror="window.taken=1">'); const s = document.createElement("script"); s.textContent = "window.taken=1"; document.body.append(s)`)
	var taken bool
	b.eval(&taken, `window.taken === 1`)
	require.False(t, taken)
}

// fill makes sagas of every kind.
func (at *site) fill() {
	at.t.Helper()
	ok := at.step("/ok", "/ok")
	for range listRows + 3 {
		at.run(&saga.Saga{GID: saga.NewGID(), Steps: make([]saga.Step, 2)})
	}
	at.run(&saga.Saga{GID: "failed", Steps: []saga.Step{ok, ok, at.step("/refuse", "/ok")}, Headers: map[string]string{"X-Tenant": "header-value"}})
	at.putOff(&saga.Saga{
		GID: "held-up", Concurrent: true, Timeout: time.Hour, RequestTimeout: time.Second, RetryLimit: 7, Custom: "custom-data",
		Steps: []saga.Step{ok, at.step("/away", "/ok"), {Action: at.branches + "/ok?long=" + strings.Repeat("long-", 30), After: []int{0, 1}}},
	})
	at.putOff(&saga.Saga{GID: strings.Repeat("0123456789abcdef", 4), Steps: []saga.Step{ok, at.step("/undecided", "")}})
	at.putOff(&saga.Saga{GID: "undone-in-vain", Steps: []saga.Step{at.step("/ok", "/refuse"), at.step("/refuse", "")}})
}

func (b *browser) logIn(token string) {
	b.t.Helper()
	b.load(func() {
		b.eval(nil, `document.querySelector("#token").value = "`+token+`"`)
		b.press(".login button")
	})
}

// pictures looks at the page that is open in every way.
func pictures(t *testing.T, b *browser, name string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for device, width := range map[string]int{"desk": 1280, "phone": 360} {
			if name != "overview" && name != "held" && (scheme == "light") != (device == "desk") {
				continue // of the plain ones, one of each will do
			}
			b.look(scheme, width, 800)
			var overflow int
			b.eval(&overflow, `document.scrollingElement.scrollWidth - innerWidth`)
			require.LessOrEqual(t, overflow, 0, "%s is wider than a %s", name, device)
			var faint []string
			b.eval(&faint, faintScript)
			require.Empty(t, faint, "%s, %s: hard to read", name, scheme)
			var taken bool
			b.eval(&taken, `window.taken === 1`)
			require.False(t, taken, "a participant's words were run")

			shot := b.screenshot()
			require.NoError(t, os.WriteFile(filepath.Join(t.ArtifactDir(), name+"-"+scheme+"-"+device+".png"), shot, 0o666))
			picture, err := png.Decode(bytes.NewReader(shot))
			require.NoError(t, err)
			r, g, blue, _ := picture.At(1, 1).RGBA() // the paper
			require.Equal(t, scheme == "light", (r+g+blue)/3 > 0x8000, "the paper of %s in %s", name, scheme)
		}
	}
}

// faintScript lists the texts with a contrast below 4.5 to 1, the least that
// WCAG 2 allows for text of this size.
const faintScript = `(() => {
	const rgb = c => c.match(/[\d.]+/g).map(Number);
	const light = c => {
		const [r, g, b] = rgb(c).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const paper = e => {
		for (; e; e = e.parentElement) {
			const c = getComputedStyle(e).backgroundColor;
			if (!/, 0\)$/.test(c)) return c;
		}
		return "rgb(255, 255, 255)";
	};
	const faint = [];
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
		const [a, b] = [light(getComputedStyle(e).color), light(paper(e))].sort((a, b) => b - a);
		if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(e.outerHTML.slice(0, 100));
	}
	return faint;
})()`
