package gateway

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
)

// content returns n bytes that no other number has, so that an answer to another request is seen.
func content(number, n int) string {
	data := make([]byte, n)
	seed := [32]byte{byte(number), byte(number >> 8), byte(number >> 16), byte(number >> 24)}
	_, _ = rand.NewChaCha8(seed).Read(data) // never fails
	return string(data)
}

// The sizes of contents, in bytes. A small one leaves its server in one piece with the head.
const small, large = 500, 300_000

// A backEnd answers /small/N and /large/N with the content of this number, and /sum/N with the sum of what it gets. It notes each
// POST, which must not be begun twice.
type backEnd struct{ notes *os.File }

func (b backEnd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target, n := b.note(r.Method, r.URL.Path)
	all, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // it is not taken for whole
	}
	_, _ = io.WriteString(w, wanted(kind{r.Method, target, 0}, n, string(all)))
}

// server speaks HTTP/1.1 and HTTP/2.
func (b backEnd) server() *http.Server {
	s := &http.Server{Handler: b, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// note divides a target, and notes a POST in the file of all back ends.
func (b backEnd) note(method, path string) (target string, n int) {
	target = path[:strings.LastIndex(path, "/")+1]
	n, _ = strconv.Atoi(path[len(target):])
	if method == "POST" {
		_, _ = fmt.Fprintln(b.notes, n)
	}
	return target, n
}

// wanted is what a back end answers.
func wanted(k kind, n int, says string) string {
	switch k.target {
	case "/small/":
		return content(n, small)
	case "/large/":
		return content(n, large)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(says)))
}

// The environment of a back end that is a process: where it listens, and the file of notes.
const backAt, backNotes = "DAIMON_BACK_AT", "DAIMON_BACK_NOTES"

// back is such a process.
func back(at string) {
	notes, err := os.OpenFile(os.Getenv(backNotes), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", at); err == nil {
			fmt.Fprintln(os.Stderr, "listening on", at)
			err = backEnd{notes}.server().Serve(l)
		}
	}
	fmt.Fprintln(os.Stderr, err)
}

// A mortal is a back end that is killed, stopped, and started again at the same address.
type mortal struct {
	at, notes string
	*exectest.Program
}

// start is called before the first request, and after each kill.
func (m *mortal) start(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), backAt+"="+m.at, backNotes+"="+m.notes)
	m.Program = exectest.Start(t, cmd)
	m.Listens(t, m.Said)
}

func (m *mortal) kill(t *testing.T) {
	m.Signal(t, syscall.SIGKILL)
	exectest.Eventually(t, patience, "the end of the back end", m.Gone)
}

// runs has a server listen.
func runs(t *testing.T, s *http.Server) (at string, end func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) })
	end = sync.OnceFunc(func() {
		_ = s.Close()
		served.Wait()
	})
	t.Cleanup(end)
	return l.Addr().String(), end
}

// faults are what a server does wrong: it sends the text, slowly, and then goes on ("+"), closes the connection ("!"), resets it
// ("~"), closes one direction ("|"), or says nothing until the gateway goes ("?"). GOOD is the right answer, HALF the half of a
// large one, and 413 an answer before the content has come.
var faults = []string{
	"!", "~", "HTTP/1.1 200 OK\nContent-Le!", "HTTP/1.1 200 OK\nContent-Le~", "HTTP/1.1 103 Early Hints\n\n~",
	"HALF!", "HALF~", "GOOD+", "GOOD|",
	"HTTP/1.1 200 OK\nContent-Length: x\n\n!", "413~",
}

// A faulty back end does one of its faults after the other.
type faulty struct {
	backEnd
	faults []string
	n      atomic.Int64
}

// serve answers a request.
func (f *faulty) serve(c net.Conn, in *bufio.Reader) (more bool) {
	m, err := readRequest(in)
	if err != nil {
		return false
	}
	line := strings.Fields(m.line)
	target, n := f.note(line[0], line[1])
	text := f.faults[f.n.Add(1)%int64(len(f.faults))]
	if strings.HasPrefix(text, "413") && line[0] != "POST" || strings.HasPrefix(text, "HALF") && target != "/large/" {
		text = "~"
	}
	if !strings.HasPrefix(text, "413") {
		m.read()
	}
	good := wanted(kind{target: target}, n, m.body)
	good = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(good), good)
	says := strings.NewReplacer("GOOD", good, "HALF", good[:len(good)/2],
		"413", "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n",
		"\n", "\r\n").Replace(text[:len(text)-1])
	for part := range slices.Chunk([]byte(says), 1+len(says)/50) {
		_, _ = c.Write(part)
	}
	switch text[len(text)-1] {
	case '+':
		return !m.cut
	case '~':
		_ = c.(*net.TCPConn).SetLinger(0)
	case '|':
		_ = c.(*net.TCPConn).CloseWrite()
		fallthrough
	case '?':
		_, _ = io.Copy(io.Discard, in)
	}
	return false
}
