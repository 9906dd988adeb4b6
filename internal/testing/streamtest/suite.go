// Package streamtest is the suite that each [monitor.Stream] has to pass below a [listener.Conn]: the sockets of an engine,
// of a simulated engine, and of filters such as TLS. Only tests import it.
//
// A new engine passes it if it implements Engine of internal/engine, or if its Streams come from a filter:
//
//	streamtest.Run(t, streamtest.Sockets("tcp", filters, client)) // over real sockets
//	streamtest.Run(t, streamtest.Way{Play: …})                    // anything else, such as the worlds of package sim
//
// A case of the suite is a [Scene]: the handler of one connection, and the script of its peer. A Way plays it with its own
// means. The script is straight-line code that blocks; what it wants to know of the handler it asks on the scheduler's thread.
// No case reads a clock: time passes when a script says so.
package streamtest

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Way is one way to get a Stream.
type Way struct {
	// Play serves connections with the handler of a scene on one scheduler, connects a peer, and calls the script. It returns
	// when script and connection have ended.
	Play func(t *testing.T, s Scene)
	// Local is for connections without a reset, such as Unix sockets: an abort may look like an end.
	Local bool
}

// Scene is a case of the suite.
type Scene struct {
	Limits listener.Limits
	Handle func(c *listener.Conn) act.Action
	Script func(p *Peer)
}

// Peer is the other end of the connection. Its Read and Write block the script only.
type Peer struct {
	net.Conn
	T *testing.T

	CloseWrite func() error             // ends its bytes
	Abort      func()                   // resets the transport
	On         func(f func())           // calls f on the scheduler's thread, after the turns that were due
	Pass       func(d time.Duration)    // lets d pass on the scheduler's clock
	Go         func(f func())           // calls f beside the script
	Open       func() (connections int) // of the service, lingering ones included
	Wait       func(until func() bool)  // until returns true on the scheduler's thread; it fails the test if that never happens
	Local      bool
}

// Await waits until f returns true on the scheduler's thread.
func (p *Peer) Await(what string, f func() bool) {
	p.T.Helper()
	p.T.Log("until ", what)
	p.Wait(f)
}

// Is requires of what f returns on the scheduler's thread, now and when all turns that are due have been taken, that it is want.
func (p *Peer) Is(want any, f func() any) {
	p.T.Helper()
	var got any
	for range 3 {
		p.On(func() { got = f() })
	}
	require.Equal(p.T, want, got)
}

// Send writes text.
func (p *Peer) Send(text string) {
	p.T.Helper()
	_, err := io.WriteString(p, text)
	require.NoError(p.T, err)
}

// Expect reads exactly text.
func (p *Peer) Expect(text string) {
	p.T.Helper()
	got := make([]byte, len(text))
	n, err := io.ReadFull(p, got)
	require.NoError(p.T, err, "after %q", got[:n])
	require.Equal(p.T, text, string(got))
}

// All reads up to the end, which must be orderly. After it the script may check what the handler has left.
func (p *Peer) All() []byte {
	p.T.Helper()
	got, err := io.ReadAll(p)
	p.On(func() {})
	require.NoError(p.T, err)
	return got
}

// Broken reads until the connection breaks off, which must not look like an end.
func (p *Peer) Broken() {
	p.T.Helper()
	if _, err := io.Copy(io.Discard, p); !p.Local {
		require.Error(p.T, err)
	}
	p.On(func() {})
}

// Run plays all scenes.
func Run(t *testing.T, w Way) {
	for name, scene := range map[string]func(t *testing.T, w Way) Scene{
		"all bytes come back, in order":                                 echo,
		"the end comes behind the last byte, and the other way is open": end,
		"the other way is open after this side's end":                   halfClose,
		"writing waits for a peer that does not read":                   room,
		"Peek waits for all that it needs, up to the limit":             peek,
		"the limit of Read holds behind what was kept":                  kept,
		"Sent waits until the system has all":                           sent,
		"Sent after CloseWrite":                                         sentAfterEnd,
		"a deadline of Read takes nothing":                              readDeadline,
		"a deadline of Write":                                           writeDeadline,
		"a reset is an error of each call":                              reset,
		"a reset wakes a writer":                                        resetOfWriter,
		"Ended is woken by the end, and not by bytes":                   ended,
		"Ended is woken by a reset":                                     endedByReset,
		"Push takes all or nothing":                                     pushDrops,
		"many tasks wait for room":                                      pushWaits,
		"a file goes behind what was written":                           file,
		"a file that is too short":                                      shortFile,
		"a file and a deadline":                                         fileDeadline,
		"a Bridge echoes":                                               bridge,
		"Close delivers what was written, though input is unread":       closes,
		"Close waits for as long as it may":                             lingers,
		"Abort throws away what was not sent":                           aborts,
		"Close ends the calls of other tasks":                           closedByAnother,
		"a connection is idle from its last byte on":                    idle,
	} {
		t.Run(name, func(t *testing.T) { w.Play(t, scene(t, w)) })
	}
}
