// Package webui is a page for people who look after sagas: what is unfinished,
// what is held up and why, one saga's steps and attempts, and two buttons, to
// abort a saga and to end its pause.
//
//	GET  /ui                      counts, the oldest unfinished sagas, those held up
//	GET  /ui/sagas?status=        lists, a page at a time
//	GET  /ui/sagas/GID            one saga
//	POST /ui/sagas/GID/abort      has it undone
//	POST /ui/sagas/GID/retry      ends its pause
//	GET  /ui/find?gid=            leads to a saga
//	     /ui/login, /ui/logout    when there is a token
//
// It is HTML made here and nothing else: no script, no build step, nothing from
// another host.
//
// # What it guarantees
//
//   - With Config.Tokens, nothing but the login form and its looks is shown to who
//     has not logged in with one. A login is a cookie that scripts cannot read and
//     other sites do not get, ends after half a day, and holds no secret; it is
//     good for every server that has the same token. Logging out ends it at this
//     server. Wrong logins are throttled by address.
//   - What changes something is a POST, and refused when another site made the
//     browser send it.
//   - All that comes from sagas is escaped, and the Content-Security-Policy
//     allows no script and no other host. Payloads and the values of headers are
//     never shown.
//   - Looking at the overview costs the store a bounded amount of work, however
//     many sagas there are and however many people look.
//
// # What it leaves to others
//
// Without a token whoever mounts it decides who may reach it. Attempts are those
// that this process made and still remembers (see [Attempts]): no store keeps
// them.
package webui
