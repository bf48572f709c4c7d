// Package dtmclient tests the HTTP API of sagas through dtm's own Go client, with
// participants that are written as dtm's users write them. It is a module of its
// own, so that what the client needs is no business of anybody else's. When the
// project's dependencies change, run go mod tidy here.
package dtmclient
