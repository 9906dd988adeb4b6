package main

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

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
	return Options{Rows: rows, Pairs: 1, Conns: 10, Messages: 300, Size: 64, Reactors: 1, Idle: 50,
		Receivers: 20, Broadcasts: 6, Long: 100, Burst: 2}
}

func TestEveryRowIsMeasured(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures all that there is")
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, small(strings.Join(names, ","))))
	for _, title := range []string{
		"echo: server CPU per message of 64 bytes, ns; conns 10,",
		"idle: growth of the server's resident set per idle connection, bytes; conns 50,",
		"broadcast: server CPU per delivery of 100 bytes, ns; 6 broadcasts to 20 connections, 2 at a time",
		"daimon/gws  control/gws  daimon/gobwas  daimon/gorilla  daimon/coder",
		"daimon/gws  daimon/gobwas  control/gobwas  daimon/gorilla  daimon/coder",
		"daimon/bare  control/bare  daimon/gorilla",
	} {
		require.Contains(t, out.String(), title)
	}
}

// Long messages have another header, and are larger than the buffers of the servers.
func TestLongTexts(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures once more")
	o := small("echo,idle,broadcast")
	o.Text, o.Size, o.Long, o.Messages, o.Reactors = true, 20000, 125, 50, 2
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, o))
	require.Contains(t, out.String(), "per text of 20000 bytes")
}

func TestWhatIsAboveItsLimitIsAnErrorAfterAllRows(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures once more")
	o := small("broadcast,echo")
	o.Servers, o.Limits, o.Burst = "daimon,bare,gws", true, 1
	before := rows[2].limits["bare"]
	defer func() { rows[2].limits["bare"] = before }()
	rows[2].limits["bare"] = 0.001
	var out strings.Builder
	require.ErrorContains(t, run(t.Context(), &out, o), "daimon/bare, ")
	require.Contains(t, out.String(), "echo: ")
}

func TestAnUnknownNameIsRefused(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), io.Discard, small("echo,ekho")), "-rows takes some of echo,")
	o := small("echo")
	o.Servers = "daimon,fasthttp"
	require.ErrorContains(t, run(t.Context(), io.Discard, o), "-servers takes some of daimon,")
}

func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir() // of its own: others may measure meanwhile
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, run(ctx, io.Discard, small("echo")))
	left, err := filepath.Glob(filepath.Join(dir, "bench-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// head is a good answer to the handshake.
const head = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: " + accept + "\r\n\r\n"

// spoiler answers the handshake, and sends the messages of talk back, the last one of them spoilt.
func spoiler(talk load.Talk, greeting string, messages int, spoil func([]byte) []byte) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, len(talk.Opening))); err != nil {
			return
		}
		if _, err := io.WriteString(c, greeting); err != nil {
			return
		}
		for phase := 1; ; phase++ { // the phase of the first message of the first connection
			if _, err := io.ReadFull(c, make([]byte, len(talk.Message(0)))); err != nil {
				return
			}
			answer := append([]byte(nil), talk.Answer(phase%phases)...)
			if phase == messages {
				answer = spoil(answer)
			}
			if _, err := c.Write(answer); err != nil || len(answer) == 0 {
				return
			}
		}
	}
}

func TestLoadFindsTheServerThatAnswersOtherwise(t *testing.T) {
	b, err := build.Into(t.TempDir())
	require.NoError(t, err)
	program, err := load.Build(b)
	require.NoError(t, err)
	m := measurement{}
	same := func(p []byte) []byte { return p }
	for name, row := range map[string]struct {
		greeting  string
		spoil     func([]byte) []byte
		complaint string
	}{
		"none":            {head, same, ""},
		"another byte":    {head, func(p []byte) []byte { p[len(p)-1]++; return p }, "other bytes than were expected"},
		"a byte more":     {head, func(p []byte) []byte { return append(p, 0) }, "more than was expected"},
		"an end":          {head, func([]byte) []byte { return nil }, "closed a connection"},
		"another status":  {strings.Replace(head, "101", "200", 1), same, "does not switch protocols"},
		"half of a head":  {head[:len(head)-2] + "x: y\r\n\r\n", same, ""},
		"an early frame":  {head + "\x82\x00", same, "more than was expected"},
		"no end of it":    {strings.Repeat("x", 5000), same, "closed a connection"},
		"a refusal":       {"HTTP/1.1 400 Bad Request\r\n\r\n", same, "does not switch protocols"},
		"another version": {strings.Replace(head, "1.1", "1.0", 1), same, "does not switch protocols"},
	} {
		for _, all := range []bool{false, true} {
			talk := m.talk("/ws", 64, 1)
			s := fake.Serve(t, fake.Listen(t), spoiler(talk, row.greeting, 20, row.spoil))
			clients := load.Generator{Program: program, Conns: 1, CPU: -1}
			if all {
				clients.Flags = []string{"-all"}
			}
			_, err := clients.Run(t.Context(), s, talk, 30)
			if row.complaint == "" {
				require.NoError(t, err, name)
			} else {
				require.ErrorContains(t, err, row.complaint, name)
			}
		}
	}
}

func TestExchangeFindsTheServerThatAnswersOtherwise(t *testing.T) {
	m := measurement{}
	talk := m.talk("/ws", 64, 1)
	for greeting, complaint := range map[string]string{
		head: "heard", // the answer of the next phase
		strings.Replace(head, accept[:3], "abc", 1): "the handshake was answered with",
		"HTTP/1.1 101 ": "bytes of the answer to a handshake",
	} {
		s := fake.Serve(t, fake.Listen(t), func(c net.Conn) {
			if greeting == "HTTP/1.1 101 " {
				_, _ = io.WriteString(c, greeting)
				return
			}
			spoiler(talk, greeting, 0, nil)(c)
		})
		c, err := net.Dial("tcp", s.Addr())
		require.NoError(t, err)
		require.ErrorContains(t, exchange(talk)(c), complaint)
		require.NoError(t, errors.Join(c.Close()))
	}
}

func TestTalksAreFramesWithMasks(t *testing.T) {
	m := measurement{Options: Options{Text: true}}
	for size, header := range map[int]int{1: 2, 125: 2, 126: 4, most: 4} {
		talk := m.talk("/ws", size, 1)
		for _, phase := range []int{0, 7, phases - 1} {
			said, heard := talk.Message(phase), talk.Answer(phase)
			require.Len(t, heard, header+size)
			require.Len(t, said, header+4+size)
			require.Equal(t, byte(0x81), said[0])
			require.Equal(t, heard[1]|0x80, said[1])
			require.Equal(t, heard[2:header], said[2:header])
			mask := said[header : header+4]
			for i, b := range said[header+4:] {
				require.Equal(t, heard[header+i], b^mask[i%4])
			}
		}
	}
}
