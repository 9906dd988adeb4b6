package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve calls f with each connection, and returns the address.
func serve(t *testing.T, network string, f func(c net.Conn)) string {
	at := "127.0.0.1:0"
	if network == "unix" {
		at = filepath.Join(t.TempDir(), "socket")
	}
	l, err := net.Listen(network, at)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
	if network == "unix" {
		return "unix:" + at
	}
	return l.Addr().String()
}

// refusing returns an address at which nothing listens.
func refusing(t *testing.T) string { return servertest.Vacant(t).String() }

func TestAllFormsDoTheSame(t *testing.T) {
	sends := func(text string) func(net.Conn) { return func(c net.Conn) { _, _ = io.WriteString(c, text) } }
	for _, row := range []struct {
		name string
		a, b func(t *testing.T) string
		want string // of the lines, or of the error
	}{
		{"two lists", func(t *testing.T) string { return serve(t, "tcp", sends("c\na\n")) },
			func(t *testing.T) string { return serve(t, "unix", sends("b\nd")) }, "a b c d"},
		{"an empty one", func(t *testing.T) string { return serve(t, "tcp", sends("")) },
			func(t *testing.T) string { return serve(t, "tcp", sends("b\n\n\nd\n")) }, "b d"},
		{"one in pieces", func(t *testing.T) string {
			return serve(t, "tcp", func(c net.Conn) {
				for i := range 10 {
					fmt.Fprintf(c, "%d", i)
				}
			})
		}, func(t *testing.T) string { return serve(t, "tcp", sends("b")) }, "0123456789 b"},
		{"connection refused", func(t *testing.T) string { return serve(t, "tcp", sends("a")) }, refusing, "connection refused"},
		{"one that never ends", func(t *testing.T) string {
			return serve(t, "tcp", func(c net.Conn) {
				for {
					if _, err := c.Write(make([]byte, 1<<16)); err != nil {
						return
					}
				}
			})
		}, func(t *testing.T) string { return serve(t, "tcp", sends("b")) }, "the list is too long"},
	} {
		for name, form := range forms {
			t.Run(row.name+" as "+name, func(t *testing.T) {
				t.Parallel()
				core, logs := observer.New(zap.WarnLevel)
				s := act.New(act.Config{Logger: zap.New(core)})
				var got []string
				form(s, row.a(t), row.b(t), func(lines []string, err error) {
					if err != nil {
						lines = []string{err.Error()}
					}
					got = append(got, strings.Join(lines, " "))
				})
				require.NoError(t, s.Run())
				require.NoError(t, s.Close())
				require.Len(t, got, 1, "one report")
				require.Contains(t, got[0], row.want)
				require.Zero(t, logs.Len(), logs.All())
			})
		}
	}
}

// A server that is silent is waited for as long as Patience. The tasklets leave that to package net.
func TestAllFormsGiveUp(t *testing.T) {
	silent := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) } // until the client closes
	for name, form := range forms {
		if name == "tasklet" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread() // coroutines live on one
			defer runtime.UnlockOSThread()
			c := &servertest.Clock{}
			l := servertest.New(t, act.Config{Clock: c})
			var got []error
			form(l.S, serve(t, "tcp", silent), serve(t, "tcp", silent), func(_ []string, err error) { got = append(got, err) })
			l.Until("the report", func() bool {
				c.Pass(patience / 100)
				return len(got) > 0
			})
			require.Len(t, got, 1)
			require.ErrorIs(t, got[0], os.ErrDeadlineExceeded)
			require.GreaterOrEqual(t, c.Monotonic(), patience)
		})
	}
}

func TestThePageShowsThisCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/four-ways.md")
	require.NoError(t, err)
	require.NotRegexp(t, `WHAT|TODO|XXX`, string(page))
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all.Write(text)
	}
	pieces := strings.Split(string(page), "```go\n")[1:]
	require.Len(t, pieces, 5)
	for _, piece := range pieces {
		code, _, _ := strings.Cut(piece, "```")
		require.Contains(t, all.String(), code, "docs/four-ways.md shows what is not there any more")
	}
}
