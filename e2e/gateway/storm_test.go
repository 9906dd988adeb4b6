package gateway

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// A load is clients that ask for one thing after the other, and what they see.
type load struct {
	at                         string
	kinds                      []kind
	want                       func(k kind, n int, says string) string // the content of an answer
	number, whole, cut, failed atomic.Int64                            // requests, and their ends
	over                       atomic.Bool

	mu    sync.Mutex
	wrong []error
	all   sync.WaitGroup
}

// A kind is one of request, for a target that a number follows.
type kind struct {
	method, target string
	size           int // of the content
}

var kinds = []kind{
	{"GET", "/small/", 0}, {"PUT", "/sum/", small}, {"POST", "/sum/", small}, {"GET", "/large/", 0}, {"DELETE", "/sum/", 0},
	{"POST", "/sum/", large}, {"POST", "/sum/", 0}, {"GET", "/small/", 0},
}

// begin has n clients begin.
func (l *load) begin(n int) {
	for range n {
		l.all.Go(func() {
			for !l.over.Load() {
				k, err := dial("tcp", l.at)
				if err != nil {
					l.note(err)
					return
				}
				for !l.over.Load() && l.visit(k) {
				}
				_ = k.Close()
			}
		})
	}
}

func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, err)
}

// visit makes a request, and reports whether the connection goes on.
func (l *load) visit(k *caller) bool {
	n := int(l.number.Add(1))
	kind := l.kinds[n%len(l.kinds)]
	says := content(n, kind.size)
	want := l.want(kind, n, says)
	m, err := k.ask(kind.method, fmt.Sprint(kind.target, n), says)
	what := fmt.Sprintf("%s %s%d of %d bytes", kind.method, kind.target, n, kind.size)
	switch {
	case err != nil && kind.target == "/large/" && !errors.Is(err, os.ErrDeadlineExceeded):
		l.cut.Add(1) // with all that had not been sent
	case err != nil:
		l.note(fmt.Errorf("%s: %w", what, err))
	case m.status == 200 && m.body == want && !m.cut:
		l.whole.Add(1)
	case m.status == 200 && m.cut && kind.target == "/large/" && strings.HasPrefix(want, m.body):
		l.cut.Add(1)
	case kind.method == "POST" && strings.Contains(" 413 502 503 504 ", fmt.Sprintf(" %d ", m.status)):
		l.failed.Add(1)
	default:
		l.note(fmt.Errorf("%s: %s, %d bytes, cut: %v", what, m.line, len(m.body), m.cut))
	}
	return err == nil && !m.cut && !m.last
}

// more waits until n more requests have been answered.
func (l *load) more(t *testing.T, n int64) {
	done := func() int64 { return l.whole.Load() + l.failed.Load() }
	from := done()
	exectest.Eventually(t, patience, "more answers", func() bool { return done() >= from+n })
}

// end has the clients stop, and requires that they have seen nothing wrong.
func (l *load) end(t *testing.T) {
	l.over.Store(true)
	l.all.Wait()
	t.Logf("%d requests: %d answers, %d cut off, %d failed", l.number.Load(), l.whole.Load(), l.cut.Load(), l.failed.Load())
	require.Empty(t, l.wrong)
}

// Two of four back ends are in order. The third is killed or stopped all the time; the fourth does everything wrong that a server
// can do. No request fails that may be repeated, unless its answer has begun: then the client sees that it is cut off. Each of
// the others is passed on at most once.
func TestStorm(t *testing.T) {
	outside(t)
	for _, row := range []struct {
		name, health, protocol string
		stops                  bool
		faults                 []string
	}{
		{"bad servers are left out", `health = { failures = 5, out = "50ms", return = "1ms" }`, "", true, append(faults, "?")},
		{"bad servers stay", `health = { failures = -1 }`, "", false, faults},
		{"bad servers stay, HTTP/2", `health = { failures = -1 }`, "h2 ", false, faults},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "notes")
			notes, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			require.NoError(t, err)
			defer notes.Close()
			first, endFirst := runs(t, backEnd{notes}.server())
			second, endSecond := runs(t, backEnd{notes}.server())
			third := &mortal{at: vacant(t), notes: path}
			third.start(t)
			fourth := newOrigin(t)
			fourth.respond = (&faulty{backEnd: backEnd{notes}, faults: row.faults}).serve
			p := program(t, "retries = 100\n"+row.health, row.protocol+first, row.protocol+second, row.protocol+third.at,
				fourth.at)
			sockets, _ := holds(t, p)
			l := &load{at: p.Addr, kinds: kinds, want: wanted}
			l.begin(8)
			l.more(t, 20)
			_, goroutines := holds(t, p) // of both schedulers; a connection has none
			for i := range tier.Choose(0, 20, 500) {
				l.more(t, 20)
				if row.stops && i%10 == 9 {
					third.Signal(t, syscall.SIGSTOP)
					l.more(t, 20)
					third.Signal(t, syscall.SIGCONT)
					continue
				}
				third.kill(t)
				l.more(t, 20)
				third.start(t)
			}
			l.end(t)

			text, err := os.ReadFile(path)
			require.NoError(t, err)
			seen := map[string]int{}
			for _, n := range strings.Fields(string(text)) {
				seen[n]++
				require.Equal(t, 1, seen[n], "POST %s was passed on again", n)
			}
			endFirst()
			endSecond()
			third.kill(t)
			fourth.end()
			exectest.Eventually(t, patience, "the end of all that it holds for them", func() bool {
				n, m := holds(t, p)
				return n <= sockets && m <= goroutines
			})
			p.Stop(t)
		})
	}
}

// holds returns what a program has open that clients and back ends can cost: sockets and goroutines.
func holds(t *testing.T, p *exectest.Program) (sockets, goroutines int) {
	at := regexp.MustCompile(`inspect at http://([^/]+)/\n`).FindStringSubmatch(p.Said())
	require.NotNil(t, at, p.Said())
	k, err := dial("tcp", at[1])
	require.NoError(t, err)
	defer k.Close()
	m, err := k.ask("GET", "/debug/pprof/goroutine?debug=1", "", "Authorization: Bearer "+token)
	require.NoError(t, err)
	_, err = fmt.Sscanf(m.body, "goroutine profile: total %d", &goroutines)
	require.NoError(t, err, m.body)
	for _, to := range p.Files(t) {
		if strings.HasPrefix(to, "socket:") {
			sockets++
		}
	}
	return sockets, goroutines
}

// vacant returns an address that nothing else takes while its server is away: other programs have no business at 127.0.77.1.
func vacant(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.77.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// A million requests have a million answers, to the byte.
func TestAMillionRequests(t *testing.T) {
	tier.Need(t, tier.Long, "makes a million requests")
	notes, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer notes.Close()
	first, _ := runs(t, backEnd{notes}.server())
	second, _ := runs(t, backEnd{notes}.server())
	p := program(t, "", first, second)
	l := &load{at: p.Addr, kinds: kinds[:3], want: wanted}
	l.begin(16)
	for range 100 {
		l.more(t, 10_000)
	}
	l.end(t)
	require.Zero(t, l.cut.Load()+l.failed.Load())
	p.Stop(t)
}
