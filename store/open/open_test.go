package open

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
	"sagabench/store"
)

func config() Config {
	var cfg Config
	cfg.RedisURL, cfg.Redis.Prefix = secret.New("redis://configured"), "saga"
	cfg.MySQLURL, cfg.SQL.Schema = secret.New("mysql://me:topsecret@configured/"), "sagas"
	return cfg
}

func TestParse_FindsTheEngineAndItsServer(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ driver, url, schema string }{
		"pebble":                      {Pebble, "", ""},
		"pebble:/data":                {Pebble, "", ""},
		"redis":                       {Redis, "redis://configured", ""},
		"redis://h:1/2":               {Redis, "redis://h:1/2", ""},
		"rediss://h":                  {Redis, "rediss://h", ""},
		"mysql":                       {MySQL, "mysql://me:topsecret@configured/", "sagas"},
		"mysql://u@h?tls=true":        {MySQL, "mysql://u@h?tls=true", "sagas"},
		"mysql://u@h/theirs?tls=true": {MySQL, "mysql://u@h/theirs?tls=true", "theirs"},
		"postgres":                    {Postgres, "", "sagas"},
		"postgres://u@h/db":           {Postgres, "postgres://u@h/db", "sagas"},
		"postgresql://u@h/db":         {Postgres, "postgresql://u@h/db", "sagas"},
	} {
		got, err := Parse(name, config())
		require.NoError(t, err, name)
		require.Equal(t, want.driver, got.Driver, name)
		require.Equal(t, want.url, got.URL(), name)
		require.Equal(t, want.schema, got.Schema(), name)
		require.Equal(t, want.driver == Pebble, got.Embedded(), name)
	}
	got, err := Parse("pebble:/data", config())
	require.NoError(t, err)
	require.Equal(t, "/data", got.Config.Pebble.Dir)
}

func TestParse_RefusesWhatItDoesNotKnow_AndShowsNoPassword(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "mongodb", "mariadb://root:topsecret@h", "root:topsecret@tcp(h)/", "MySQL"} {
		_, err := Parse(name, config())
		require.ErrorIs(t, err, store.ErrInvalid, name)
		require.ErrorContains(t, err, "is unknown: want pebble")
		require.NotContains(t, err.Error(), "topsecret")
	}
}

func TestFresh_IsAPlaceThatNobodyElseHas(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"redis": "redis://configured", "mysql": "mysql://me:topsecret@configured/",
		"mysql://u:p%2Fw@h:1/theirs?tls=true": "mysql://u:p%2Fw@h:1/?tls=true",
		"mysql://u@h":                         "mysql://u@h/",
		"mysql://u:%@h/theirs":                "mysql://u:%@h/theirs", // for Open to refuse
		"postgres://u@h/db":                   "postgres://u@h/db",
		"postgres":                            "",
	} {
		target, err := Parse(name, config())
		require.NoError(t, err)
		one, other := target.Fresh(), target.Fresh()
		require.Equal(t, url, one.URL(), name)
		require.NotEqual(t, one, other)
		if target.Driver == Redis {
			require.Regexp(t, `^b[A-Z2-7]{7}$`, one.Config.Redis.Prefix)
		} else if url != "mysql://u:%@h/theirs" {
			require.Regexp(t, `^sagabench_[a-z2-7]{8}$`, one.Schema())
		}
	}
	pebble, err := Parse("pebble:/data", config())
	require.NoError(t, err)
	require.Equal(t, pebble, pebble.Fresh())
}

func TestOpen_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"redis", "mysql", "postgres"} {
		target, err := Parse(name, Config{})
		require.NoError(t, err)
		_, err = target.Open(t.Context())
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, name+": which server? Set "+name+".url")
	}
}

func TestRedact_LeavesOutPasswords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"pebble:/a@b":          "pebble:/a@b",
		"--in-flight=64":       "--in-flight=64",
		"redis://:topsecret@h": "redis://:***@h",
		"redis://h?master_name=m&sentinel_password=topsecret": "redis://h?master_name=m&sentinel_password=***",
		"mysql://u:topsecret@h:1/d?tls=true":                  "mysql://u:***@h:1/d?tls=true",
		"mysql://u:topsecret%@h":                              "mysql://***",
		"postgres://u@h/d?sslmode=disable":                    "postgres://u@h/d?sslmode=disable",
		"postgres://u@h/d?password=topsecret&sslmode=a":       "postgres://u@h/d?password=***&sslmode=a",
		"postgres://u:topsecret@h/d?a=b&sslpassword=topsec":   "postgres://u:***@h/d?a=b&sslpassword=***",
		"postgres://u:topsecret@h/d?sslkey=/k&password=tops":  "postgres://u:***@h/d?sslkey=/k&password=***",
		"redis://h?addr=:topsecret@h2:1":                      "redis://***",
		"redis://h?addr=redis%3A%2F%2F:topsecret%40h2:1":      "redis://***",
		"redis://me:1?top=secret@h":                           "redis://***", // a question mark in a password
	} {
		require.Equal(t, want, Redact(text))
	}
}
