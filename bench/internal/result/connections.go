package result

// From these shares on, connections are too few.
const (
	waitingShare    = 0.05 // of the time of a call to the store, that it waits for a connection
	fullServerShare = 0.98 // of those that the store's server allows: one may be kept free
)

// KeptOut is the share of the time in which clients were turned away by the app, of
// several servers together at most 1.
func (r Resources) KeptOut() *float64 {
	if r.AppKeptOut == nil {
		return nil
	}
	x := min(1, *r.AppKeptOut)
	return &x
}

// ConnsInUse is the share of the app's connections to the store's server that were in
// use, or nil where calls did not wait for one: those under way have one each.
func (r Resources) ConnsInUse() *float64 {
	busy, waits, conns := r.StoreCallsBusy, r.StoreConnWaits, r.StoreConns
	if busy == nil || waits == nil || conns == nil || *conns < 1 || *waits < waitingShare**busy {
		return nil
	}
	x := min(1, (*busy-*waits) / *conns)
	return &x
}

// ServerConnsTaken is the share of the connections that the store's server allows which
// was open, or nil where there was room for more, or no request failed: up to the last
// one they keep nobody waiting, and who asks for one more gets an error.
func (r Resources) ServerConnsTaken(failed int64) *float64 {
	if x := r.StoreServerConns; x == nil || *x < fullServerShare || failed == 0 {
		return nil
	}
	return r.StoreServerConns
}

// lopsidedShare is how much busier than all cores together one of them is where
// something runs on one core only.
const lopsidedShare = 0.1

// OneCoreOnly is how busy the busiest core is, or nil where the others are hardly less
// so.
func OneCoreOnly(busiest, all *float64) *float64 {
	if busiest != nil && all != nil && *busiest-*all < lopsidedShare {
		return nil
	}
	return busiest
}
