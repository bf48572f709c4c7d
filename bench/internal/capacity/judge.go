package capacity

import (
	"strings"

	"sagabench/bench/internal/result"
)

// Judge sets whether m met the service level, and why not. It leaves that open if m is
// not valid, or has too few requests.
func Judge(m *result.Step, slo result.SLO) {
	if !m.Validity.Valid {
		m.MeetsSLO, m.Why = nil, strings.Join(m.Validity.Warnings, "; ")
		return
	}
	m.MeetsSLO, m.Why = slo.Judge(m.Measurement)
}
