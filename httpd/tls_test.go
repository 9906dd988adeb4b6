package httpd_test

import (
	"crypto/tls"
	"flag"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/secure"
)

// overTLS has the tests of a driver run with TLS between the wire and the server.
var overTLS = flag.Bool("httpd.tls", false, "run all tests that step a scheduler over TLS")

// tlsConfig is that of all servers.
var tlsConfig = sync.OnceValue(func() *tls.Config {
	cert, err := secure.SelfSigned()
	if err != nil {
		panic(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1", "http/1.0"}, CurvePreferences: curves}
})

// onReactor has handshakes made on the thread that steps the scheduler.
var onReactor = &secure.Handshakes{OnReactor: true}

var curves = []tls.CurveID{tls.X25519} // it costs least

// encrypted is the transport between a server that speaks TLS and a client of crypto/tls. What comes over the wire is what
// the client sends, and what it receives goes to the wire. So a test sees what it would see without TLS.
type encrypted struct {
	*wire
	t        testing.TB
	client   *tls.Conn
	step     chan struct{} // of the client's handshake, on a goroutine: begins and ends one
	shaken   bool          // the handshake is over
	up, down []byte        // records for the server and for the client, not yet received
	most     int           // bytes that the server receives at a time
	torn     bool          // the client's last record is cut off, and there is no close_notify
	bare     bool          // there is no close_notify
	ended    bool          // the client has sent close_notify
	notified bool          // the server has
}

// encrypt puts TLS over w. Every other client speaks TLS 1.2, and of four one has its records come in pieces.
func (d *driver) encrypt(w *wire) *encrypted {
	d.dialed++
	cfg := &tls.Config{ServerName: "new", InsecureSkipVerify: true, ClientSessionCache: d.sessions,
		NextProtos: []string{"http/1.1"}, CurvePreferences: curves, DynamicRecordSizingDisabled: d.dialed%8 < 4}
	if d.dialed%2 == 0 {
		cfg.ServerName, cfg.MaxVersion = "old", tls.VersionTLS12 // a session of its own
	}
	e := &encrypted{wire: w, t: d.t, step: make(chan struct{}), most: 64 << 10, torn: d.torn, bare: d.bare}
	if d.dialed%4 == 3 {
		e.most = 7
	}
	e.client = tls.Client((*carrier)(e), cfg)
	go func() {
		<-e.step
		assert.NoError(d.t, e.client.Handshake())
		e.shaken = true
		e.step <- struct{}{}
	}()
	return e
}

// shake goes on with the handshake until the client needs more, which is there in the next call.
func (e *encrypted) shake() {
	e.step <- struct{}{}
	<-e.step
}

// Receive gives the server records of what comes over the wire.
func (e *encrypted) Receive(p []byte) (int, error) {
	for len(e.up) == 0 {
		if !e.shaken {
			if e.shake(); len(e.up) == 0 {
				return 0, monitor.ErrWouldBlock
			}
			continue
		}
		in, err := e.wire.Lend(1 << 20)
		switch {
		case err == nil:
			_, err = e.client.Write(in)
			require.NoError(e.t, err)
		case err == io.EOF && !e.ended:
			e.end()
		default:
			return 0, err
		}
	}
	n := copy(p[:min(len(p), e.most)], e.up)
	e.up = e.up[n:]
	return n, nil
}

// end ends the client's side.
func (e *encrypted) end() {
	e.ended = true
	switch {
	case e.torn:
		_, err := e.client.Write([]byte("the rest of it"))
		require.NoError(e.t, err)
		e.up = e.up[:len(e.up)-1]
	case !e.bare:
		require.NoError(e.t, e.client.CloseWrite())
	}
}

func (e *encrypted) Lend(most int) ([]byte, error) {
	p := make([]byte, min(most, 1<<10))
	n, err := e.Receive(p)
	return p[:n], err
}

func (e *encrypted) AwaitInput(x act.Waker) {
	if e.wire.AwaitInput(x); len(e.up) > 0 {
		x.Wake()
	}
}

// Send decrypts the records of the server, which go to the wire.
func (e *encrypted) Send(head, p []byte, high int) (int, error) {
	if _, err := e.wire.Send(nil, nil, high); err != nil {
		return 0, err
	}
	e.down = append(append(e.down, head...), p...)
	if !e.shaken {
		e.shake()
	}
	for in := make([]byte, 16<<10); e.shaken && !e.notified; {
		n, err := e.client.Read(in)
		_, _ = e.wire.Send(in[:n], nil, 0)
		switch {
		case err == errNoRecord:
			if len(e.up) > 0 {
				e.reader.Wake()
			}
			return len(p), nil
		case err == io.EOF:
			e.notified = true
		default:
			require.NoError(e.t, err)
		}
	}
	if e.shaken {
		require.Empty(e.t, e.down, "after close_notify")
	} else if len(e.up) > 0 {
		e.reader.Wake()
	}
	return len(p), nil
}

// SendFile is for no server that speaks TLS.
func (e *encrypted) SendFile(*os.File, int64, int) (int, error) {
	panic("a file is sent that is not encrypted")
}

// Close wants the server to have said that nothing more comes.
func (e *encrypted) Close(linger time.Duration) {
	if _, err := e.Queued(); err == nil && !e.notified {
		e.t.Error("closed without close_notify")
	}
	e.wire.Close(linger)
}

// carrier is an encrypted as the net.Conn below its client. It never blocks: the client's Read returns errNoRecord, after
// which it can be called again.
type carrier encrypted

var errNoRecord net.Error = noRecord{}

type noRecord struct{}

func (noRecord) Error() string   { return "no record yet" }
func (noRecord) Timeout() bool   { return false }
func (noRecord) Temporary() bool { return true }

func (c *carrier) Read(p []byte) (int, error) {
	for len(c.down) == 0 {
		if c.shaken {
			return 0, errNoRecord
		}
		c.step <- struct{}{}
		<-c.step
	}
	n := copy(p, c.down)
	c.down = c.down[n:]
	return n, nil
}

func (c *carrier) Write(p []byte) (int, error) {
	c.up = append(c.up, p...)
	return len(p), nil
}

func (c *carrier) Close() error                     { return nil }
func (c *carrier) LocalAddr() net.Addr              { return nil }
func (c *carrier) RemoteAddr() net.Addr             { return nil }
func (c *carrier) SetDeadline(time.Time) error      { return nil }
func (c *carrier) SetReadDeadline(time.Time) error  { return nil }
func (c *carrier) SetWriteDeadline(time.Time) error { return nil }
