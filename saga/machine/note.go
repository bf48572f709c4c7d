package machine

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sagabench/store"
)

// note is the stored form of a State, without its status and marks.
type note struct {
	Aborted string   `json:"aborted,omitempty"`
	Held    string   `json:"held,omitempty"`
	Busy    int      `json:"busy,omitempty"`  // ms
	Holds   [][3]int `json:"holds,omitempty"` // branch, tries, ms to wait
	Forced  bool     `json:"forced,omitempty"`
}

// Note returns what a store keeps of the state beside status and marks. It fits into
// store.MaxNoteBytes: reasons come from Reason, and a retry takes at most 25 bytes.
func (s State) Note() string {
	n := note{Aborted: s.Aborted, Held: s.RetryReason, Forced: s.Forced, Busy: int(s.Busy.Milliseconds())}
	for _, h := range s.Retries {
		n.Holds = append(n.Holds, [3]int{int(h.Branch), h.Tries, int(h.Wait.Milliseconds())})
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(n); err != nil {
		panic(fmt.Sprintf("machine: a note of strings and numbers: %v", err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// SetNote sets what Note has returned.
func (s *State) SetNote(text string) error {
	if text == "" {
		return nil
	}
	var n note
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return fmt.Errorf("note: %w", err)
	}
	s.Aborted, s.RetryReason, s.Forced, s.Busy = n.Aborted, n.Held, n.Forced, time.Duration(n.Busy)*time.Millisecond
	for _, h := range n.Holds {
		s.Retries = append(s.Retries, Retry{Branch: store.Branch(h[0]), Tries: h[1], Wait: time.Duration(h[2]) * time.Millisecond})
	}
	return nil
}

// maxReasonBytes bounds each of the reasons that a note holds.
const maxReasonBytes = 512

// Reason makes one short line, which a store accepts, of a text that a branch may have
// written.
func Reason(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxReasonBytes)], "")) // or it would keep all of text in memory
}
