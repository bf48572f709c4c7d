package store

import "errors"

// What Apply, Get and opening a store can answer. They arrive wrapped; match
// them with errors.Is.
var (
	// ErrConflict: the saga does not have the epoch or the status that the
	// transition expects, or a mark it sets is set otherwise. Nothing was
	// written.
	ErrConflict = errors.New("the saga has moved on")

	// ErrNotFound: no saga has this gid, or its retention has passed.
	ErrNotFound = errors.New("no such saga")

	// ErrExists: a saga with this gid and another body is there. Nothing was
	// written.
	ErrExists = errors.New("the gid belongs to another saga")

	// ErrDuplicate: this very saga, with the same body, is there already.
	// Nothing was written and nothing needs to be: whoever created it has its
	// acknowledgement. Get says how the saga stands.
	ErrDuplicate = errors.New("the saga was submitted before")

	// ErrInvalid: the request is outside the limits of this package. The text
	// names the field and the limit. Nothing was written.
	ErrInvalid = errors.New("invalid request")

	// ErrUnreadable: what the store holds under a gid is not a record that this
	// version can read. Somebody changed it by hand, or another version wrote it.
	ErrUnreadable = errors.New("the record cannot be read")

	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")

	// ErrInUse: another process holds the store, and this engine allows one.
	ErrInUse = errors.New("the store is in use by another process")

	// ErrAbsent: the store was to be there already, and is not. Nothing was created.
	ErrAbsent = errors.New("there is no store of sagas here")

	// ErrUnsafe: the server is set up so that it may drop unfinished sagas,
	// or what it holds was laid out with other settings than these.
	ErrUnsafe = errors.New("the store cannot be used safely")
)
