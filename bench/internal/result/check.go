package result

// Check is the audit: it compares the answers that clients received with what the store
// holds after the run, warm-up included. If the store was not audited, all counts but
// Acknowledged are nil.
type Check struct {
	Acknowledged  int64  `json:"acknowledged"`  // sagas whose outcome a client received
	Terminal      *int64 `json:"terminal"`      // finished sagas of the run; null: not audited
	Lost          *int64 `json:"lost"`          // acknowledged sagas that the store lacks or has unfinished
	BothOutcomes  *int64 `json:"both_outcomes"` // sagas that both succeeded and failed
	Uncompensated *int64 `json:"uncompensated"` // failed sagas with a step that was not compensated
	Unfinished    *int64 `json:"unfinished"`    // sagas of the run that had not ended

	// These are no violations, and are left out of the counts above.
	Expired      int64 `json:"expired,omitempty"`       // acknowledged longer ago than the store's retention, and removed
	ForceStopped int64 `json:"force_stopped,omitempty"` // stopped by force

	// LostWrites counts how often a coordinator found, in the measured part, that the store
	// lacked what it had acknowledged for a saga.
	LostWrites int64 `json:"lost_writes,omitempty"`
}

// CountsDiffer begins the warning about a store that has more sagas than Explains allows.
const CountsDiffer = "counts differ: "

// countShare is of the answers. As many sagas more in the store are no other client's.
const countShare = 0.001

// Explains reports whether the store may have so many sagas after the answers that clients
// received and these errors. A failed request may have left a saga.
func (c Check) Explains(stored, errors int64) bool {
	return float64(stored-c.Acknowledged-errors) <= countShare*float64(c.Acknowledged)
}

// Count is one of the counts of an audit. N is nil if the store was not audited.
type Count struct {
	Name      string
	N         *int64
	Violation bool // whether it must be zero
}

// Counts lists what the audit counted.
func (c Check) Counts() []Count {
	return []Count{
		{"acknowledged", &c.Acknowledged, false},
		{"terminal", c.Terminal, false},
		{"lost", c.Lost, true},
		{"with both outcomes", c.BothOutcomes, true},
		{"uncompensated", c.Uncompensated, true},
		{"unfinished", c.Unfinished, false},
	}
}

// Violations lists the counts that must be zero and are not.
func (c Check) Violations() (found []Count) {
	for _, count := range c.Counts() {
		if count.Violation && count.N != nil && *count.N > 0 {
			found = append(found, count)
		}
	}
	return found
}

// SumChecks adds up the audits of several runs. A count that one of them lacks is nil.
func SumChecks(all []Check) (sum Check) {
	for i, c := range all {
		if i == 0 {
			sum = c
			continue
		}
		sum.Acknowledged += c.Acknowledged
		sum.Expired += c.Expired
		sum.ForceStopped += c.ForceStopped
		sum.LostWrites += c.LostWrites
		sum.Terminal = Sum(sum.Terminal, c.Terminal)
		sum.Lost = Sum(sum.Lost, c.Lost)
		sum.BothOutcomes = Sum(sum.BothOutcomes, c.BothOutcomes)
		sum.Uncompensated = Sum(sum.Uncompensated, c.Uncompensated)
		sum.Unfinished = Sum(sum.Unfinished, c.Unfinished)
	}
	return sum
}

// Sum adds two figures. It is nil if either is unknown.
func Sum[N int64 | float64](a, b *N) *N {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}
