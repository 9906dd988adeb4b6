package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
)

// A member is a member as seen from outside.
type member struct {
	*net.TCPConn
	in *bufio.Reader
}

// join connects, says its name, and is in the lobby when it reads of that.
func join(t *testing.T, chat *exectest.Program, name string) member {
	t.Helper()
	c := dial(t, chat.Addr)
	x := member{c, bufio.NewReader(c)}
	x.hear(t, "Your name?")
	x.say(t, name)
	x.hear(t, came(name))
	return x
}

func came(name string) string { return "* " + keptName(name) + " has come to lobby" }
func left(name string) string { return "* " + keptName(name) + " has left lobby" }

// keptName is what is kept of a name.
func keptName(name string) string {
	name = strings.TrimSpace(name)
	return strings.TrimSpace(name[:min(len(name), 32)])
}

func (x member) say(t *testing.T, line string) {
	t.Helper()
	_, err := io.WriteString(x, line+"\n")
	require.NoError(t, err)
}

// hear wants this line next.
func (x member) hear(t *testing.T, line string) {
	t.Helper()
	got, err := x.in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, line+"\n", got)
}

// TestChat is what two people see.
func TestChat(t *testing.T) {
	t.Parallel()
	outside(t)
	underEachIdle(t, chats)
}

// serve starts a chat on two schedulers, under any strategy: that lines cross is the point.
func serveChat(t *testing.T, idle idle) *exectest.Program {
	t.Helper()
	return serve(t, "chat", idle.with("-reactors", "2", "-web", "127.0.0.1:0")...)
}

func chats(t *testing.T, idle idle) {
	chat := serveChat(t, idle)
	ada := join(t, chat, "Ada")
	ben := join(t, chat, "  Ben\r")
	ada.hear(t, came("Ben"))
	ada.say(t, "hello")
	ben.hear(t, "Ada: hello") // and Ada does not
	ben.say(t, "")
	ben.say(t, "a bell\a, \x1b[31mred\x1b[0m, and \xff")
	ada.hear(t, "Ben: a bell, [31mred[0m, and \uFFFD")

	nameless := dial(t, chat.Addr)
	require.NoError(t, nameless.Close())

	for i, way := range []struct {
		name  string
		leave func(member) error
	}{
		{"closes", func(x member) error { return x.Close() }},
		{"half-closes", func(x member) error { return x.CloseWrite() }},
		{"says so", func(x member) error {
			_, err := io.WriteString(x, "/leave\n")
			return err
		}},
		{"goes to another room", func(x member) error {
			_, err := io.WriteString(x, "/join kitchen\n")
			return err
		}},
		{"resets", func(x member) error { return errors.Join(x.SetLinger(0), x.Close()) }},
		{"says too much", func(x member) error {
			_, err := io.WriteString(x, strings.Repeat("x", 2000))
			return err
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			name := fmt.Sprintf("guest %d, whose name is too long to be kept whole", i)
			guest := join(t, chat, name)
			ada.hear(t, came(name))
			ben.hear(t, came(name))
			require.NoError(t, way.leave(guest))
			ada.hear(t, left(name))
			ben.hear(t, left(name))
		})
	}

	ada.say(t, "/who")
	ada.hear(t, "* in lobby: Ada, Ben")
	require.NoError(t, ada.Close())
	ben.hear(t, left("Ada"))

	chat.Signal(t, syscall.SIGTERM) // the last word is the chat's
	ben.hear(t, "* the chat ends")
	_, err := ben.in.ReadByte()
	require.Equal(t, io.EOF, err)
	require.NoError(t, ben.Close())
	require.Zero(t, chat.Exit(t))
	require.Contains(t, chat.Said(), "ended in order")
	require.NotContains(t, chat.Said(), "failed")
}
