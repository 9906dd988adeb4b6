package gateway

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
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
	_, _ = rand.NewChaCha8([32]byte{byte(number), byte(number >> 8), byte(number >> 16), byte(number >> 24)}).Read(data) // never fails
	return string(data)
}

// The sizes of contents, in bytes. A small one leaves its server in one piece with the head.
const small, large = 500, 300_000

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// A backEnd answers /small/N and /large/N with the content of this number, and /sum/N with the sum of what it gets. It notes what it
// has begun that must not be begun twice.
type backEnd struct{ notes *os.File }

func (b backEnd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, number, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	n, _ := strconv.Atoi(number)
	b.note(r.Method, number)
	switch kind {
	case "small":
		_, _ = io.WriteString(w, content(n, small))
	case "large":
		_, _ = io.WriteString(w, content(n, large))
	default:
		all, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // it is not taken for whole
		}
		_, _ = io.WriteString(w, sum(string(all)))
	}
}

// note appends a line to a file of all back ends.
func (b backEnd) note(method, number string) {
	if method == "POST" {
		_, _ = b.notes.WriteString(number + "\n")
	}
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
			err = http.Serve(l, backEnd{notes})
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

// healthy runs a back end.
func healthy(t *testing.T, b backEnd) (at string, end func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: b}
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) })
	end = sync.OnceFunc(func() {
		_ = s.Close()
		served.Wait()
	})
	t.Cleanup(end)
	return l.Addr().String(), end
}

// faults are what a server does wrong with a request whose head it has: it sends the text, and then closes the connection ("!"),
// resets it ("~") or says nothing until the gateway goes ("?"). LARGE is half of a large answer, and 413 an answer before the content
// has come.
var faults = []string{
	"!", "~", "HTTP/1.1 200 OK\nContent-Le!", "HTTP/1.1 200 OK\nContent-Le~", "HTTP/1.1 103 Early Hints\n\n~", "LARGE!", "LARGE~", "good", "slow", "half",
	"HTTP/1.1 200 OK\nContent-Length: x\n\n!", "413~",
}

// A faulty back end does one thing wrong after the other.
type faulty struct {
	backEnd
	faults []string
	n      atomic.Int64
}

// serve answers the requests of a connection.
func (f *faulty) serve(c net.Conn, in *bufio.Reader) (more bool) {
	m, err := readHead(in)
	if err != nil {
		return false
	}
	parts := strings.Split(m.line, " ") // method, target, version
	kind, number, _ := strings.Cut(parts[1][1:], "/")
	n, _ := strconv.Atoi(number)
	f.note(parts[0], number)
	text := f.faults[f.n.Add(1)%int64(len(f.faults))]
	if strings.HasPrefix(text, "413") && parts[0] != "POST" || strings.HasPrefix(text, "LARGE") && kind != "large" {
		text = "~"
	}
	if !strings.HasPrefix(text, "413") { // that comes before the content
		m.readBody(in, "")
	}
	whole := map[string]string{"small": content(n, small), "large": content(n, large)}[kind]
	whole = cmp.Or(whole, sum(m.body))
	good := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(whole), whole)
	switch text {
	case "good", "slow", "half":
		step := map[string]int{"slow": 1 + len(good)/100}[text]
		for rest := good; rest != "" && err == nil; {
			k := min(cmp.Or(step, len(rest)), len(rest))
			_, err = io.WriteString(c, rest[:k])
			rest = rest[k:]
		}
		if text == "half" {
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, in)
		}
		return text != "half" && !m.cut
	}
	end := text[len(text)-1]
	_, _ = io.WriteString(c, strings.NewReplacer("LARGE", good[:len(good)/2], "413", "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").
		Replace(raw(text[:len(text)-1])))
	switch end {
	case '~':
		_ = c.(*net.TCPConn).SetLinger(0)
	case '?':
		_, _ = io.Copy(io.Discard, in)
	}
	return false
}
