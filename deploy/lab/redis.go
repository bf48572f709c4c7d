package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Redis is the kind of Redis servers. They keep nothing on disk unless their settings
// say so.
var Redis = &Kind{
	name: "Redis", binaries: "redis-server", debian: "redis-server", homebrew: "redis",
	account: "redis", listenSetting: "bind", binariesVariable: "LAB_REDIS_SERVERS", imageBinaries: "|valkey-server",
	engine: func(context.Context, *Server) (engine, error) { return redisEngine{}, nil },
}

type redisEngine struct{}

func (redisEngine) defaults() map[string]string {
	return map[string]string{
		"bind":           "127.0.0.1",
		"protected-mode": "yes",
		"daemonize":      "no",
		"loglevel":       "warning",
		"save":           "",
		"appendonly":     "no",
	}
}

// prepare draws another password for each port: the ready check tells it to whoever
// has taken the port.
func (redisEngine) prepare(_ context.Context, s *Server) error {
	if s.password = s.settings["requirepass"]; s.password == "" {
		s.password = newPassword()
	}
	return nil
}

func (redisEngine) process(s *Server) ProcessConfig {
	return ProcessConfig{
		// Redis reads its configuration from standard input, so that the password is
		// neither in a file nor in the process list.
		Args:  []string{"-"},
		Stdin: strings.NewReader(redisConf(s)),
		Dir:   s.dir,
		Ready: func(ctx context.Context, p *Process) error { return pingRedis(ctx, s, p.PID()) },
	}
}

func (redisEngine) url(s *Server) string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", s.password), Host: s.Addr()}
	return u.String()
}

func (e redisEngine) dsn(s *Server, _ string) string { return e.url(s) }

// redisConf writes the settings as a redis.conf.
func redisConf(s *Server) string {
	var conf strings.Builder
	fmt.Fprintf(&conf, "port %d\nrequirepass %s\n", s.port, redisQuote(s.password))
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		if name == "port" || name == "requirepass" {
			continue
		}
		if name == "masterauth" {
			fmt.Fprintf(&conf, "%s %s\n", name, redisQuote(s.settings[name]))
			continue
		}
		for line := range strings.SplitSeq(s.settings[name], "\n") {
			if line = strings.TrimSpace(line); line == "" {
				line = `""`
			}
			fmt.Fprintf(&conf, "%s %s\n", name, line)
		}
	}
	return conf.String()
}

// redisQuote writes value as one argument, for redis.conf and inline commands.
func redisQuote(value string) string {
	var quoted strings.Builder
	for _, c := range []byte(value) {
		switch {
		case c == '"' || c == '\\':
			quoted.WriteByte('\\')
			quoted.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&quoted, `\x%02x`, c)
		default:
			quoted.WriteByte(c)
		}
	}
	return `"` + quoted.String() + `"`
}

// pingRedis returns an error unless process pid serves at the server's address: another
// Redis may have taken the port. It cannot ask a server whose ACL refuses the default
// user, and takes it for ready.
func pingRedis(ctx context.Context, s *Server, pid int) error {
	text, err := askRedis(ctx, s, "INFO")
	_, acl := s.settings["user"]
	_, aclFile := s.settings["aclfile"]
	switch {
	case errors.Is(err, errRedisPassword) && (acl || aclFile):
		return nil
	case err != nil:
		return err
	case !strings.Contains(text, fmt.Sprintf("process_id:%d\r\n", pid)):
		return fmt.Errorf("another Redis listens on %s", s.Addr())
	case strings.Contains(text, "\nloading:1\r\n"): // async_loading is another field; a sentinel has neither
		return errors.New("it loads its data")
	}
	return nil
}

var errRedisPassword = errors.New("the password was refused")

// askRedis sends one command over a connection of its own, and returns the reply, which
// must be a string.
func askRedis(ctx context.Context, s *Server, command ...string) (string, error) {
	conn, err := dial(ctx, s.Addr())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var request strings.Builder
	fmt.Fprintf(&request, "AUTH %s\r\n*%d\r\n", redisQuote(s.password), len(command))
	for _, word := range command { // an inline command has at most 64 KiB
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, request.String()); err != nil {
		return "", err
	}
	replies := bufio.NewReader(conn)
	reply, err := replies.ReadString('\n')
	switch {
	case err != nil:
		return "", err
	case strings.HasPrefix(reply, "-WRONGPASS"):
		return "", fmt.Errorf("%w: %s", errRedisPassword, strings.TrimSpace(reply))
	case reply != "+OK\r\n":
		return "", errors.New(strings.TrimSpace(reply))
	}
	name := strings.Join(command[:min(2, len(command))], " ")
	if reply, err = replies.ReadString('\n'); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	reply = strings.TrimSpace(reply)
	if simple, ok := strings.CutPrefix(reply, "+"); ok {
		return simple, nil
	}
	var size int
	if _, err := fmt.Sscanf(reply, "$%d", &size); err != nil || size < 0 {
		return "", fmt.Errorf("%s: %s", name, reply)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(replies, text); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(text), nil
}
