// Package webui is a page for people who operate sagas. It shows what is unfinished, what
// waits and why, and the steps and attempts of one saga. Two buttons abort a saga and retry
// it at once.
//
//	GET  /ui                      counts, the oldest unfinished sagas, those that wait for a branch
//	GET  /ui/sagas?status=        lists, a page at a time
//	GET  /ui/sagas/GID            one saga
//	POST /ui/sagas/GID/abort      aborts it
//	POST /ui/sagas/GID/retry      retries it at once
//	GET  /ui/find?gid=            redirects to a saga
//	     /ui/login, /ui/logout    when there is a token
//
// It is plain HTML made here: no script, no build step, nothing from another host.
//
// # What it guarantees
//
//   - With Config.Tokens, only the login form, its style and its icon are served without
//     a login. A login is a signed cookie that scripts cannot read and other sites do not
//     get. It holds no secret, ends after 12 hours, and is valid on every server with the
//     same token. A logout ends it at this server, replacing the token everywhere.
//   - Wrong logins are limited by address.
//   - Every change is a POST. It is refused if another site made the browser send it.
//   - Everything that comes from sagas is escaped, and the Content-Security-Policy allows
//     no script and no other host. Payloads and the values of headers are never shown.
//   - The memory and the store's work for all requests together are bounded.
//
// # What it leaves to others
//
// Without a token, the server that registers it decides who may reach it. Attempts are
// those that this process made and still remembers (see [Attempts]): no store keeps them.
package webui
