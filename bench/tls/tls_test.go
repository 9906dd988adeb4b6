package main

import (
	"context"
	"crypto/tls"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/fake"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/internal/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a measurement that takes little time.
func small(rows string) Options {
	return Options{Rows: rows, Pairs: 1, Conns: 10, Exchanges: 200, Handshakes: 30, Idle: 50, Reactors: 1, Flood: 100 * time.Millisecond}
}

func TestEveryRowIsMeasured(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures all that there is")
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, small(strings.Join(names, ","))))
	for _, title := range []string{
		"echo: server CPU per message of 64 bytes, ns;", "http: server CPU per GET request, ns;",
		"full: server CPU per full handshake, ns;", "resumed: server CPU per resumed handshake, ns;",
		"idle: growth of the server's resident set", "upload: growth of the server's resident set",
		"flood: µs for a request on one of 10 connections",
		"daimon/goroutines  control/goroutines", "daimon/net/http",
	} {
		require.Contains(t, out.String(), title)
	}
}

func TestWhatIsAboveItsLimitIsAnErrorAfterAllRows(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures once more")
	before := limits["echo"]["goroutines"]
	defer func() { limits["echo"]["goroutines"] = before }()
	limits["echo"]["goroutines"] = 0.001
	o := small("echo,flood")
	require.NoError(t, run(t.Context(), io.Discard, o))
	o.Limits = true
	var out strings.Builder
	require.ErrorContains(t, run(t.Context(), &out, o), "daimon/goroutines, ")
	require.Contains(t, out.String(), "flood: ")
}

func TestAnUnknownRowIsRefused(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), io.Discard, small("echo,ekho")), "-rows takes some of echo,")
}

func TestNothingIsLeftBehind(t *testing.T) {
	left := func() []string {
		dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "bench-tls-[0-9]*"))
		require.NoError(t, err)
		return dirs
	}
	before := left()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, run(ctx, io.Discard, small("echo")))
	require.Subset(t, before, left())
}

func TestLoadFindsTheServerThatAnswersOtherwise(t *testing.T) {
	dir := t.TempDir()
	b, err := build.Into(dir)
	require.NoError(t, err)
	program, err := b.Go("tls/load")
	require.NoError(t, err)
	id, err := issue(dir)
	require.NoError(t, err)
	pair, err := tls.LoadX509KeyPair(id.certificate, id.key)
	require.NoError(t, err)
	good := tls.Config{Certificates: []tls.Certificate{pair}}
	for name, row := range map[string]struct {
		spoil     func(message []byte) []byte
		configure func(*tls.Config)
		flags     []string
		complaint string
	}{
		"none":            {},
		"another byte":    {spoil: func(m []byte) []byte { m[len(m)-1]++; return m }, complaint: "other bytes than were expected"},
		"a byte more":     {spoil: func(m []byte) []byte { return append(m, 0) }, complaint: "more than was expected"},
		"an end":          {spoil: func([]byte) []byte { return nil }, complaint: "closed a connection"},
		"another curve":   {configure: func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256} }, complaint: "handshake failure"},
		"an old version":  {configure: func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, complaint: "protocol version"},
		"no session":      {configure: func(c *tls.Config) { c.SessionTicketsDisabled = true }, flags: []string{"-handshakes", "resumed"}, complaint: "no session ticket"},
		"resumed":         {flags: []string{"-handshakes", "resumed"}},
		"full handshakes": {flags: []string{"-handshakes", "full"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := good.Clone()
			if row.configure != nil {
				row.configure(config)
			}
			if row.spoil == nil {
				row.spoil = func(m []byte) []byte { return m }
			}
			s := fake.Serve(t, tls.NewListener(fake.Listen(t), config), fake.Echo(size, 5, row.spoil))
			clients := load.Generator{Program: program, Conns: 2, CPU: -1, Flags: append(row.flags, "-certificate", id.certificate)}
			_, err := clients.Run(t.Context(), s, load.Echo(size), 20)
			if row.complaint == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.complaint)
			}
		})
	}
}
