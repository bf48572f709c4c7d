package saga

import (
	"reflect"
	"sync/atomic"

	"sagabench/store"
)

// Counters are totals since the start of the coordinator, except InFlight.
type Counters struct {
	Submitted   int64 // accepted and started here
	Refused     int64 // not accepted: MaxInFlight sagas were under way
	Recovered   int64 // taken over: deferred before, or left by another coordinator
	Succeeded   int64
	Failed      int64
	Deferred    int64 // runs that ended with a retry scheduled
	Lost        int64 // runs that ended because another coordinator took over, or the saga was gone
	StoreErrors int64 // calls of the store that failed and were repeated
	// LostWrites counts how often the store did not have what it had acknowledged: it is
	// less durable than it should be, or was restored from an older copy.
	LostWrites int64
	// RefusedCompensations counts answers of participants that refuse a compensation. It is
	// repeated for ever: an operator must repair the participant.
	RefusedCompensations int64
	InFlight             int64 // sagas that run here now
}

func (c *Counters) ended(s store.Status) {
	if s == store.StatusSucceeded {
		atomic.AddInt64(&c.Succeeded, 1)
	} else {
		atomic.AddInt64(&c.Failed, 1)
	}
}

// Counters reads the counters one by one, not as one snapshot.
func (c *Coordinator) Counters() (now Counters) {
	from, to := reflect.ValueOf(&c.stats).Elem(), reflect.ValueOf(&now).Elem()
	for i := range to.NumField() {
		to.Field(i).SetInt(atomic.LoadInt64(from.Field(i).Addr().Interface().(*int64)))
	}
	return now
}
