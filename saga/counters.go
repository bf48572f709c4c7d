package saga

import (
	"sync/atomic"

	"sagabench/store"
)

// Counters are running totals since the coordinator was started, but for
// InFlight, which is how many sagas it is running now.
type Counters struct {
	Submitted   int64 // accepted and begun here
	Refused     int64 // not accepted: MaxInFlight were under way
	Recovered   int64 // taken over: put off, or left by another coordinator
	Succeeded   int64
	Failed      int64
	PutOff      int64 // runs that ended with a branch undecided
	Lost        int64 // runs that ended because another coordinator took over, or the saga was gone
	StoreErrors int64 // calls of the store that failed and were tried again
	// LostWrites counts how often the store was found not to have what it had
	// acknowledged: it is less durable than it should be, or was set back.
	LostWrites int64
	// RefusedCompensations counts the answers of participants that refuse to undo
	// what they did. Each is asked again, for ever: somebody must mend it.
	RefusedCompensations int64
	InFlight             int64
}

type counters struct {
	submitted, refused, recovered, succeeded, failed, putOff, lost, storeErrors, lostWrites, refusedCompensations, inFlight atomic.Int64
}

func (c *counters) ended(s store.Status) {
	if s == store.StatusSucceeded {
		c.succeeded.Add(1)
	} else {
		c.failed.Add(1)
	}
}

// Counters reads them one by one: they may be apart by what happens meanwhile.
func (c *Coordinator) Counters() Counters {
	s := &c.stats
	return Counters{
		Submitted:   s.submitted.Load(),
		Refused:     s.refused.Load(),
		Recovered:   s.recovered.Load(),
		Succeeded:   s.succeeded.Load(),
		Failed:      s.failed.Load(),
		PutOff:      s.putOff.Load(),
		Lost:        s.lost.Load(),
		StoreErrors: s.storeErrors.Load(),
		LostWrites:  s.lostWrites.Load(),

		RefusedCompensations: s.refusedCompensations.Load(),
		InFlight:             s.inFlight.Load(),
	}
}
