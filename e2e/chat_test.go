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

// join connects, says its name, and is in the lobby when it hears of that.
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
	return name[:min(len(name), 32)]
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
	return serve(t, "chat", idle.with("-reactors", "2")...)
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

// Each of 20 members on two schedulers says 50 lines, all at a time. Each reads every line of the 19 others
// once, and those of each in the order in which they were said.
func TestEverybodyReadsEverything(t *testing.T) {
	outside(t)
	underEachIdle(t, readsEverything)
}

func readsEverything(t *testing.T, idle idle) {
	const members, lines = 20, 50
	chat := serveChat(t, idle)
	var all []member
	for i := range members {
		all = append(all, join(t, chat, fmt.Sprintf("m%d", i)))
		for j := range i {
			all[j].hear(t, came(fmt.Sprintf("m%d", i)))
		}
	}
	results := make(chan error, 2*members)
	for i, x := range all {
		go func() { results <- sayLines(x, lines) }()
		go func() { results <- hearLines(x, i, members, lines) }()
	}
	for range 2 * members {
		require.NoError(t, <-results)
	}
	for _, x := range all {
		require.NoError(t, x.Close())
	}
	chat.Stop(t)
}

func sayLines(x member, lines int) error {
	for n := range lines {
		if _, err := fmt.Fprintf(x, "%d\n", n); err != nil {
			return err
		}
	}
	return nil
}

// hearLines wants the lines of all but me.
func hearLines(x member, me, members, lines int) error {
	next := make([]int, members)
	for range (members - 1) * lines {
		line, err := x.in.ReadString('\n')
		if err != nil {
			return err
		}
		var who, n int
		if _, err := fmt.Sscanf(line, "m%d: %d\n", &who, &n); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		if who == me || n != next[who] {
			return fmt.Errorf("m%d heard %q, and expected %d", me, line, next[who])
		}
		next[who]++
	}
	return nil
}

// A member that does not read is cut off; the others go on and miss nothing.
func TestASlowMemberIsCutOffAndHoldsUpNobody(t *testing.T) {
	outside(t)
	chat := serveChat(t, idle{"-idle", "interrupt"})
	var fast []member
	for _, name := range []string{"talker", "a", "b", "c"} {
		x := join(t, chat, name)
		for _, other := range fast {
			other.hear(t, came(name))
		}
		fast = append(fast, x)
	}
	slow := join(t, chat, "slow")
	require.NoError(t, slow.SetReadBuffer(4<<10))
	for _, x := range fast {
		x.hear(t, came("slow"))
	}

	talker, rest := fast[0], fast[1:]
	gone := make(chan error, 1)
	go func() {
		_, err := talker.in.ReadString('\n') // the first that it hears
		gone <- err
	}()
	filler := strings.Repeat("x", 1000)
	heard := map[int]bool{} // who has heard that the slow one has left
	said := 0
	for len(gone) == 0 && said < 20_000 { // at most 20 MB, more than any kernel keeps for a connection
		var batch []string // far fewer than a member may be behind: only the slow one can be
		for range 32 {
			batch = append(batch, fmt.Sprintf("%d %s", said, filler))
			said++
		}
		talker.say(t, strings.Join(batch, "\n"))
		for i, x := range rest {
			for _, line := range batch {
				got, err := x.in.ReadString('\n')
				if err == nil && got == left("slow")+"\n" {
					heard[i] = true
					got, err = x.in.ReadString('\n')
				}
				require.NoError(t, err)
				require.Equal(t, "talker: "+line+"\n", got)
			}
		}
	}
	require.NoError(t, <-gone)
	for i, x := range rest {
		if !heard[i] {
			x.hear(t, left("slow"))
		}
	}
	_, err := io.Copy(io.Discard, slow)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Greater(t, said, 1000, "so far behind it may be")
	for _, x := range fast {
		require.NoError(t, x.Close())
	}
	chat.Stop(t)
	require.NotContains(t, chat.Said(), "failed")
}
