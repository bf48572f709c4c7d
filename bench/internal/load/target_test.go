package load

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
	"sagabench/store"
)

// dtm answers as a server of dtm's API does: without the gid.
type dtm struct {
	t        *testing.T
	mu       sync.Mutex
	told     map[string]store.Status
	answered string // to every saga instead of its end, if not empty
	tokens   map[string]int
}

func (d *dtm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	var body struct {
		GID   string `json:"gid"`
		Steps string `json:"steps"`
	}
	if err := json.Unmarshal(text, &body); err != nil || r.Header.Get("Content-Type") != "application/json" || int64(len(text)) != r.ContentLength {
		d.t.Errorf("%s: %v", text, err)
	}
	time.Sleep(5 * time.Millisecond)
	outcome, status, answer := store.StatusSucceeded, http.StatusOK, `{"dtm_result":"SUCCESS"}`
	if body.Steps == "refused" {
		outcome, status, answer = store.StatusFailed, http.StatusConflict, `{"dtm_result":"FAILURE","message":"refused"}`
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.told[body.GID]; known || store.CheckGID(body.GID) != nil {
		d.t.Errorf("gid %q", body.GID)
	}
	d.told[body.GID] = outcome
	d.tokens[r.Header.Get("Authorization")]++
	if d.answered != "" {
		answer = d.answered
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func newDTM(t *testing.T) *dtm {
	return &dtm{t: t, told: map[string]store.Status{}, tokens: map[string]int{}}
}

func submitTo(url string) Target {
	return Target{
		URL:        url,
		Submission: []byte(`{"gid":"` + GIDPlaceholder + `","steps":"fine"}`),
		Refused:    []byte(`{"steps":"refused","gid":"` + GIDPlaceholder + `"}`),
		Fail:       0.3,
	}
}

func TestRun_SubmitsSagasWithGidsOfTheirOwn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDTM(t)
		cfg := bubbled(t, d.ServeHTTP)
		cfg.Targets = []Target{submitTo("http://a/"), submitTo("http://b/")}
		cfg.Warmup = 100 * time.Millisecond
		cfg.Token = secret.New("the-token")
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Zero(t, res.Errors, res.ErrorsByKind)
		require.Positive(t, res.Succeeded)
		require.Positive(t, res.Failed)
		require.InEpsilon(t, 0.3, float64(res.Failed)/float64(res.Sagas()), 0.2)
		require.Equal(t, d.told, readAll(t, cfg.Dir), "each outcome under the gid that it was told for")
		require.EqualValues(t, len(d.told), res.Acknowledged)
		require.Equal(t, map[string]int{"Bearer the-token": len(d.told)}, d.tokens)
		require.Equal(t, res.Requests, countResults(t, cfg.Dir))
	})
}

func TestRun_ASubmission_IsBelievedByItsResultOnly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, said := range []string{`{"gid":"g"}`, `{"dtm_result":"FAILURE"}`, `{"dtm_result":"ONGOING"}`, `SUCCESS`, `{}`} {
			d := newDTM(t)
			d.answered = said
			cfg := bubbled(t, d.ServeHTTP)
			cfg.Targets = []Target{submitTo("http://a/")}
			cfg.Targets[0].Fail = 0
			res, err := Run(t.Context(), cfg)
			require.NoError(t, err)
			require.Zero(t, res.Sagas(), said)
			require.Equal(t, map[string]int64{kindNoResult: res.Requests}, res.ErrorsByKind, said)
			require.Equal(t, map[string]int{"": len(d.told)}, d.tokens, "no token, no header")
		}
	})
}
