package httpapi

import (
	"encoding/json"
	"errors"
	"testing"

	"sagabench/store"
)

// Whatever is submitted, it is a saga or an error that says what is wrong.
func FuzzSubmission(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"trans_type":"saga","steps":[{"data":"1"},{}],"payloads":[""]}`,
		`{"trans_type":"saga","steps":[{},{}],"payloads":["",""],"custom_data":"{\"orders\":{\"1\":[0]},\"concurrent\":true}"}`,
		`{"trans_type":"saga","steps":[{},{}],"payloads":["",""],"custom_data":"{\"orders\":{\"-1\":[7],\"9\":null}}"}`,
		`{"trans_type":"saga","steps":null,"timeout_to_fail":-9223372036854775808}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var s submission
		err := explain("body", json.Unmarshal(body, &s))
		if err == nil {
			made, failed := s.saga()
			if err = failed; err == nil {
				if len(made.Steps) != len(s.Steps) {
					t.Errorf("%d steps of %d", len(made.Steps), len(s.Steps))
				}
				return
			}
		}
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("not the submitter's: %v", err)
		}
	})
}
