package chat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// chat is a Chat that runs, with its two services.
type chat struct {
	*servertest.Running
	*Chat
	lines, web *service.TCP
}

func start(t *testing.T, cfg act.Config) *chat { return startWith(t, cfg, 64) }

// startWith is start with that many messages in the mailbox of a room.
func startWith(t *testing.T, cfg act.Config, most int) *chat { return startPaced(t, cfg, most, 0) }

// startPaced is startWith for members that say one line in that time, after a burst.
func startPaced(t *testing.T, cfg act.Config, most int, every time.Duration) *chat {
	c := &chat{Chat: New()}
	c.most, c.every = most, every
	c.lines = &service.TCP{Address: "127.0.0.1:0", Handler: c.Member, MaxConns: 10_000}
	site := &httpd.Server{Handler: c.Site()}
	c.web = &service.TCP{Address: "127.0.0.1:0", Handler: site.Serve, MaxConns: 10_000}
	c.Running = servertest.Start(t, cfg, c.Setup, c.lines.Setup, c.web.Setup)
	return c
}

// look asks for a room without creating one.
type look struct {
	name  string
	reply process.Reply[process.Ref[message]]
}

func (q look) at(h *hall, p *process.Self[query]) { q.reply.Send(p, h.rooms[q.name]) }

// census asks for the number of members.
type census struct{ reply process.Reply[int] }

func (x census) at(r *room, p *process.Self[message]) { x.reply.Send(p, len(r.seats)) }

// room returns the room of that name; the zero Ref if there is none.
func (c *chat) room(name string) process.Ref[message] {
	ref, err := process.Call(c.patience(), c.hall, func(r process.Reply[process.Ref[message]]) query { return look{name, r} })
	require.NoError(c.T, err)
	return ref
}

func (c *chat) patience() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Timeout)
	c.T.Cleanup(cancel)
	return ctx
}

// members returns the number of members in a room.
func (c *chat) members(name string) int {
	n, err := process.Call(c.patience(), c.room(name), func(r process.Reply[int]) message { return census{r} })
	if err != nil {
		require.ErrorIs(c.T, err, process.ErrDead)
	}
	return n
}

// waitFor waits until the lobby has that many members.
func (c *chat) waitFor(n int) {
	c.T.Helper()
	require.Eventually(c.T, func() bool { return c.members(lobby) == n }, servertest.Timeout, time.Millisecond)
}

// empty waits until all members have left and all rooms have ended. The hall stays.
func (c *chat) empty() {
	c.T.Helper()
	require.Eventually(c.T, func() bool { return c.sys.Stats().Alive == 1 }, servertest.Timeout, time.Millisecond)
}

// end ends the chat, and requires that nothing is cut or logged and no process is left.
func (c *chat) end() {
	c.T.Helper()
	c.Group.Shutdown(servertest.Drain)
	require.NoError(c.T, c.End())
	require.Empty(c.T, c.Logs.All())
	require.Zero(c.T, c.sys.Stats().Alive)
}

// client is a connection that has sent a name and reads lines.
type client struct {
	t *testing.T
	net.Conn
	lines *bufio.Scanner
}

func (c *chat) client(name string) *client { return c.clientBy(name, net.Dialer{}) }

func (c *chat) clientBy(name string, dialer net.Dialer) *client {
	conn, err := dialer.Dial("tcp", c.lines.Addr().String())
	require.NoError(c.T, err)
	require.NoError(c.T, conn.SetDeadline(time.Now().Add(servertest.Timeout)))
	c.T.Cleanup(func() { _ = conn.Close() })
	servertest.Send(c.T, conn, name+"\n")
	return &client{c.T.(*testing.T), conn, bufio.NewScanner(conn)}
}

// hearEnd reads up to the end, and closes, for which the server would otherwise wait some seconds.
func hearEnd(t *testing.T, c net.Conn) {
	t.Helper()
	servertest.ExpectEOF(t, c)
	require.NoError(t, c.Close())
}

// hears returns the next line that a member said.
func (c *client) hears() (string, error) {
	for c.lines.Scan() {
		if line := c.lines.Text(); !strings.HasPrefix(line, "* ") && line != "Your name?" {
			return line, nil
		}
	}
	return "", fmt.Errorf("the end: %w", c.lines.Err())
}

func TestEachLineOnceAndInTheOrderOfItsSpeaker(t *testing.T) { servertest.UnderEach(t, eachLineOnce) }

func eachLineOnce(t *testing.T, cfg act.Config) {
	const members, lines = 12, 30
	c := start(t, cfg)
	var all []*client
	for i := range members {
		all = append(all, c.client(fmt.Sprintf("m%d", i)))
	}
	c.waitFor(members)

	type heard struct {
		by    int
		all   []string            // in the order of arrival
		lines map[string][]string // by speaker
		err   error
	}
	results := make(chan heard, members)
	for i, m := range all {
		go func() {
			for k := range lines {
				fmt.Fprintf(m, "%d\n", k) // on an error the others notice that a line is missing
			}
		}()
		go func() {
			h := heard{by: i, lines: map[string][]string{}}
			for range (members - 1) * lines {
				var line string
				if line, h.err = m.hears(); h.err != nil {
					break
				}
				h.all = append(h.all, line)
				name, text, _ := strings.Cut(line, ": ")
				h.lines[name] = append(h.lines[name], text)
			}
			results <- h
		}()
	}
	var want []string
	for k := range lines {
		want = append(want, fmt.Sprint(k))
	}
	var first heard
	for n := range members {
		h := <-results
		require.NoError(t, h.err)
		for i := range members {
			if i != h.by {
				require.Equal(t, want, h.lines[fmt.Sprintf("m%d", i)], "m%d as heard by m%d", i, h.by)
			}
		}
		if n == 0 {
			first = h
		}
		require.Equal(t, without(first.all, h.by), without(h.all, first.by), "all hear the same conversation")
	}
	for _, m := range all { // nothing comes twice: after the last line comes the end
		require.NoError(t, m.Conn.(*net.TCPConn).CloseWrite())
	}
	for _, m := range all {
		line, err := m.hears()
		require.Empty(t, line)
		require.Error(t, err)
	}
	c.empty()
	c.end()
}

// without returns lines without those of one member.
func without(lines []string, member int) (rest []string) {
	for _, line := range lines {
		if !strings.HasPrefix(line, fmt.Sprintf("m%d: ", member)) {
			rest = append(rest, line)
		}
	}
	return rest
}

func TestMembersComeAndLeave(t *testing.T) { servertest.UnderEach(t, comeAndLeave) }

func comeAndLeave(t *testing.T, cfg act.Config) {
	c := start(t, cfg)
	ada := c.client("Ada")
	servertest.Expect(t, ada, "Your name?\n* Ada has come to lobby\n")
	ben := c.client("Ben")
	servertest.Expect(t, ada, "* Ben has come to lobby\n")
	servertest.Send(t, ben, "hello\r\n\n")
	servertest.Expect(t, ada, "Ben: hello\n")
	servertest.Reset(t, ben.Conn)
	servertest.Expect(t, ada, "* Ben has left lobby\n")
	servertest.Send(t, ada, "/leave\n")
	servertest.Expect(t, ada, bye.text)
	hearEnd(t, ada)
	c.empty()
	c.end()
}

func TestRoomsComeAndGo(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	ada, ben := c.client("Ada"), c.client("Ben")
	c.waitFor(2)
	lobbyAtFirst := c.room(lobby)
	servertest.Send(t, ada, "/join  kitchen \n")
	hearBehind(t, ada, "* Ada has come to kitchen\n")
	hearBehind(t, ben, "* Ada has left lobby\n")
	kitchen := c.room("kitchen")
	require.EqualValues(t, 3, c.sys.Stats().Alive, "the hall and two rooms")

	servertest.Send(t, ada, "nobody hears this\n/who\n")
	servertest.Expect(t, ada, "* in kitchen: Ada\n")
	servertest.Send(t, ben, "/who\n/join\n/shout\nnor this\n/join kitchen\n/who\n")
	servertest.Expect(t, ben, "* in lobby: Ben\n"+unclear.text+unclear.text+"* Ben has come to kitchen\n* in kitchen: Ada, Ben\n")
	servertest.Expect(t, ada, "* Ben has come to kitchen\n")
	servertest.Send(t, ben, "but this\n")
	servertest.Expect(t, ada, "Ben: but this\n")
	gone := servertest.Receive(t, ends(lobbyAtFirst))
	require.Equal(t, process.Normal, gone.Reason)
	require.Eventually(t, func() bool { return c.room(lobby).ID() == 0 }, servertest.Timeout, time.Millisecond)

	servertest.Send(t, ada, "/join lobby\n")
	servertest.Expect(t, ada, "* Ada has come to lobby\n")
	require.NotEqual(t, lobbyAtFirst, c.room(lobby))
	require.NotZero(t, c.room(lobby).ID())
	servertest.Expect(t, ben, "* Ada has left kitchen\n")
	servertest.Send(t, ben, "/join kitchen\n/who\n") // in one packet
	servertest.Expect(t, ben, "* Ben has come to kitchen\n* in kitchen: Ben\n")
	require.Equal(t, process.Normal, servertest.Receive(t, ends(kitchen)).Reason, "nobody was there for a moment")
	require.NoError(t, ada.Close())
	require.NoError(t, ben.Close())
	c.empty()
	c.end()
}

// hearBehind reads up to and with text.
func hearBehind(t *testing.T, c net.Conn, text string) {
	t.Helper()
	var all []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(all), text); all = append(all, one[0]) {
		_, err := io.ReadFull(c, one)
		require.NoError(t, err, "after %q", all)
	}
}

// ends returns a channel that gets the notice of the end of a process.
func ends(of process.AnyRef) <-chan process.Notice {
	c := make(chan process.Notice, 1)
	go func() {
		for f := process.Ended(of); ; time.Sleep(time.Millisecond) {
			if n, err := f.Value(); err == nil {
				c <- n
				return
			}
		}
	}()
	return c
}

// Rooms end while members enter them, and no member is lost: one that changes rooms always arrives in one.
func TestManyMembersChangeRooms(t *testing.T) {
	const members, hops = 10, 60
	c := startWith(t, act.Config{Schedulers: 2}, 2)
	results := make(chan error, members)
	for i := range members {
		m := c.client(fmt.Sprintf("m%d", i))
		go func() {
			results <- func() error {
				for n := range hops {
					name := fmt.Sprintf("room%d", (n*(i+1)+i)%3)
					if _, err := fmt.Fprintf(m, "/join %s\n", name); err != nil {
						return err
					}
					want := fmt.Sprintf("* m%d has come to %s", i, name)
					for m.lines.Scan() && m.lines.Text() != want {
					}
					if err := m.lines.Err(); err != nil {
						return err
					}
				}
				return m.Close()
			}()
		}()
	}
	for range members {
		require.NoError(t, <-results)
	}
	c.empty()
	require.Greater(t, c.sys.Stats().Ended, int64(2), "rooms have come and gone")
	c.end()
}

// bomb is a message that makes a room panic.
type bomb struct{}

func (bomb) at(*room, *process.Self[message]) { panic("a bug") }

// A room that panics is created again by its members, who are told. Other rooms are not affected.
func TestARoomThatPanicsIsCreatedAgain(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	ada, ben, eve := c.client("Ada"), c.client("Ben"), c.client("Eve")
	c.waitFor(3)
	servertest.Send(t, eve, "/join kitchen\n")
	hearBehind(t, ada, "* Eve has left lobby\n")
	hearBehind(t, ben, "* Eve has left lobby\n")
	hearBehind(t, eve, "* Eve has come to kitchen\n")
	end := ends(c.room(lobby))
	require.NoError(t, c.room(lobby).Send(c.sys, bomb{}))
	n := servertest.Receive(t, end)
	require.Equal(t, process.Panicked, n.Reason)
	require.ErrorContains(t, n.Err, "a bug")
	for _, m := range []*client{ada, ben} {
		servertest.Expect(t, m, "* lobby has broken down\n")
	}
	c.waitFor(2)
	servertest.Send(t, ada, "are you there?\n")
	hearBehind(t, ben, "Ada: are you there?\n")
	servertest.Send(t, ben, "I am.\n")
	hearBehind(t, ada, "Ben: I am.\n")
	servertest.Send(t, eve, "/who\n")
	servertest.Expect(t, eve, "* in kitchen: Eve\n")
	require.Equal(t, 1, c.Logs.FilterMessage("a process has panicked").Len())
	c.Logs.TakeAll()
	for _, m := range []*client{ada, ben, eve} {
		require.NoError(t, m.Close())
	}
	c.empty()
	c.end()
}

// trap is a room that panics when a member enters.
type trap struct{ room }

func (*trap) Act(p *process.Self[message]) act.Directive {
	if _, ok := p.Receive(); ok {
		panic("a trap")
	}
	return act.Wait
}

// A member that cannot enter any room is told so after a number of tries.
func TestARoomThatPanicsEachTimeIsGivenUp(t *testing.T) {
	made := 0
	makeRoom = func(name string) process.Action[message] {
		made++
		return &trap{room: *newRoom(name)}
	}
	defer func() { makeRoom = aRoom }()
	c := start(t, act.Config{Schedulers: 2})
	ada := c.client("Ada")
	servertest.Expect(t, ada, "Your name?\n"+noWay.text)
	hearEnd(t, ada)
	c.empty()
	require.Equal(t, 1+maxTries, made)
	c.Logs.TakeAll()
	c.end()
}

// The speaker waits until what it said was heard, so only the members that do not read can be behind: one on a terminal, one
// on a page.
// Socket buffers are small, so that the system does not queue much for them.
func TestMembersThatDoNotReadAreDisconnected(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	deaf := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		return raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		})
	}}
	speaker, reader := c.client("speaker"), c.client("reader")
	silent := c.clientBy("deaf", deaf)
	conn, err := deaf.Dial("tcp", c.web.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	page, err := visit(conn, "")
	require.NoError(t, err)
	require.NoError(t, page.wish(wish{Type: "join", Name: "blind"}))
	c.waitFor(4)
	batch := strings.Repeat(strings.Repeat("x", 1000)+"\n", 32)
	said := 0
	for ; c.members(lobby) > 2 && said < 20_000; said += 32 { // 20 MB, far more than the system queues
		servertest.Send(t, speaker, batch)
		for range 32 {
			line, err := reader.hears()
			require.NoError(t, err)
			require.Equal(t, "speaker: "+batch[:1000], line)
		}
	}
	require.Equal(t, 2, c.members(lobby), "they were not cut off")
	require.Greater(t, said, maxBehind)
	_, err = io.Copy(io.Discard, silent)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	for err = nil; err == nil; { // it may still hear a part of it, and even why
		_, err = page.next()
	}
	require.NoError(t, conn.Close())
	require.NoError(t, speaker.Close())
	require.NoError(t, reader.Close())
	c.empty()
	c.end()
}

// gate is a room whose process does not receive while it is shut.
type gate struct {
	*room
	shut atomic.Bool
	self atomic.Pointer[process.Self[message]]
}

func (g *gate) Act(p *process.Self[message]) act.Directive {
	g.self.Store(p)
	if g.shut.Load() {
		return act.Wait
	}
	return g.room.Act(p)
}

// While a room does not receive, its members are not read from, but still get lines, and other rooms go on. Afterwards all
// that was said is heard, in order.
func TestAMemberThatSendsTooFastWaits(t *testing.T) {
	g := &gate{room: newRoom(lobby)}
	makeRoom = func(name string) process.Action[message] {
		if name == lobby {
			return g
		}
		return aRoom(name)
	}
	defer func() { makeRoom = aRoom }()
	c := startWith(t, act.Config{Schedulers: 2}, 2)
	speaker, reader := c.client("s"), c.client("r")
	c.waitFor(2)
	g.shut.Store(true)

	// A line is almost a kilobyte, so the system and the connection hold a few thousand of them.
	line := strings.Repeat("x", 900)
	said := 0
	require.NoError(t, speaker.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
	var err error
	for ; err == nil && said < 100_000; said++ {
		_, err = fmt.Fprintf(speaker, "%05d %s\n", said, line)
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "%d lines were taken", said)
	said-- // a part of the last line may have been sent

	other := c.client("o") // it waits for admission
	require.NoError(t, other.Close())
	g.shut.Store(false)
	g.self.Load().Poke()
	go func() { _, _ = io.Copy(io.Discard, speaker) }()
	for n := range said {
		heard, err := reader.hears()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("s: %05d %s", n, line), heard)
	}
	servertest.Reset(t, speaker.Conn)
	require.NoError(t, reader.Close())
	c.empty()
	c.end()
}

// Many members that send fast to a mailbox of two are all heard, each line once.
func TestManyMembersSpeakAtATime(t *testing.T) {
	c := startWith(t, act.Config{Schedulers: 2}, 2)
	const each, speakers, listeners = 300, 6, 4
	var all []*client
	for i := range listeners {
		all = append(all, c.client(fmt.Sprint("listener", i)))
	}
	c.waitFor(listeners)
	for i := range speakers {
		go func() {
			conn, err := net.Dial("tcp", c.lines.Addr().String())
			if err != nil {
				return
			}
			defer conn.Close()
			go func() {
				_, _ = conn.Write([]byte(fmt.Sprintf("s%d\n", i) + strings.Repeat("l\n", each)))
				_ = conn.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(io.Discard, conn) // closing with unread bytes would be a reset
		}()
	}
	results := make(chan error, listeners)
	for _, l := range all {
		go func() {
			var err error
			for n := 0; n < speakers*each && err == nil; n++ {
				_, err = l.hears()
			}
			results <- err
		}()
	}
	for range listeners {
		require.NoError(t, <-results)
	}
	for _, l := range all {
		require.NoError(t, l.Close())
	}
	c.empty()
	c.end()
}

// At the end all members hear what was said before, and a last line, whichever room they are in.
func TestAnOrderlyEnd(t *testing.T) { servertest.UnderEach(t, orderlyEnd) }

func orderlyEnd(t *testing.T, cfg act.Config) {
	c := start(t, cfg)
	nameless, err := net.Dial("tcp", c.lines.Addr().String())
	require.NoError(t, err)
	defer nameless.Close()
	servertest.Expect(t, nameless, "Your name?\n")
	ada, ben, eve := c.client("Ada"), c.client("Ben"), c.client("Eve")
	c.waitFor(3)
	servertest.Send(t, eve, "/join kitchen\n")
	hearBehind(t, eve, "* Eve has come to kitchen\n")
	hearBehind(t, ada, "* Eve has left lobby\n")
	hearBehind(t, ben, "* Eve has left lobby\n")
	ref := c.room(lobby)
	for range 50 { // from outside: what was sent is heard
		require.NoError(t, ref.Deliver(c.patience(), say{&seat{name: "the host"}, "last orders"}))
	}
	c.Group.Shutdown(servertest.Drain)
	for _, m := range []*client{ada, ben} {
		servertest.Expect(t, m, strings.Repeat("the host: last orders\n", 50)+over.text)
		hearEnd(t, m)
	}
	servertest.Expect(t, eve, over.text)
	hearEnd(t, eve)
	servertest.Expect(t, nameless, over.text)
	hearEnd(t, nameless)
	c.end()
}

// A member that does not read delays the end only briefly.
func TestMembersThatDoNotReadDelayTheEndBriefly(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	deaf := c.client("deaf")
	require.NoError(t, deaf.Conn.(*net.TCPConn).SetReadBuffer(4<<10))
	c.waitFor(1)
	text := strings.Repeat("x", 60_000)
	var err error
	for n := 0; n < maxBehind; n++ {
		require.NoError(t, c.room(lobby).Deliver(c.patience(), say{&seat{name: "the host"}, text}))
	}
	begun := time.Now()
	c.end()
	require.Less(t, time.Since(begun), servertest.Timeout/2)
	require.NoError(t, deaf.SetReadDeadline(time.Now().Add(servertest.Timeout)))
	_, err = io.Copy(io.Discard, deaf)
	require.True(t, err == nil || errors.Is(err, syscall.ECONNRESET), err)
}
