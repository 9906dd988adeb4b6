package coro_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

func TestHowAServedConnectionEnds(t *testing.T) {
	for _, row := range []struct {
		name   string
		body   func(*coro.Conn) error
		logged string
		reset  bool
	}{
		{"nil", func(*coro.Conn) error { return nil }, "", false},
		{"io.EOF", func(*coro.Conn) error { return io.EOF }, "", false},
		{"an error", func(*coro.Conn) error { return errWhy }, "because", false},
		{"an error around io.EOF", func(*coro.Conn) error { return fmt.Errorf("early: %w", io.EOF) }, "early: EOF", false},
		{"what a peer that has gone leaves", func(*coro.Conn) error { return syscall.ECONNRESET }, "", false},
		{"a panic of a later turn", func(c *coro.Conn) error { _ = c.Co().Yield(); boom(); return nil }, "panic: boom", true},
		{"Close of its own", func(c *coro.Conn) error { return c.Close() }, "", false},
		{"a panic after a Close", func(c *coro.Conn) error { _ = c.Close(); boom(); return nil }, "panic: boom", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := serve(t, func(c *coro.Conn) error {
				if _, err := io.WriteString(c, "hello"); err != nil {
					return err
				}
				if _, err := c.Read(make([]byte, 1)); err != nil {
					return err
				}
				return row.body(c)
			})
			for range 2 { // the scheduler lives on
				c := v.dial()
				servertest.Send(t, c, "?")
				got, err := io.ReadAll(c)
				require.Equal(t, row.reset, errors.Is(err, syscall.ECONNRESET), err)
				if !row.reset {
					require.Equal(t, "hello", string(got))
				}
				_ = c.Close()
			}
			v.Group.Shutdown(servertest.Drain)
			require.NoError(t, v.End())
			if row.logged == "" {
				require.Empty(t, v.failures())
				return
			}
			require.Equal(t, []string{row.logged, row.logged}, v.failures())
			require.Contains(t, v.Logs.FilterMessage("a task failed").All()[0].ContextMap()["task"], "TestHowAServedConnectionEnds",
				"the body is named, and not what Serve makes of it")
		})
	}
}

func TestABodyIsNamedAfterItsFunction(t *testing.T) {
	a := coro.Serve(echo)(new(listener.Conn))
	require.True(t, strings.HasSuffix(act.Name(a), "coro_test.echo"), act.Name(a))
	require.Contains(t, act.Name(coro.New(func(*coro.Co) error { return nil })), "TestABodyIsNamed")
}
