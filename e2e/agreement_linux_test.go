package e2e

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
)

// A call is a system call in the output of strace -f -yy.
type call struct {
	thread, text, name string
	result             int64
	begun              int // the number of its line
}

var (
	aLine  = regexp.MustCompile(`^(\d+) +(.*)$`)
	resume = regexp.MustCompile(`^<\.\.\. \w+ resumed>`)
	aCall  = regexp.MustCompile(`^(\w+)\(.*= (-?\d+)`)
	// The time limit of a poll is behind the number of events that there is room for.
	looks  = regexp.MustCompile(`, 256, (0|\{tv_sec=0, tv_nsec=0\}), NULL`)
	sigint = " --- SIGINT "
)

// traced returns the calls that were begun before the signal that ends the server.
func traced(t *testing.T, path string) (all []call) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	end := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, sigint) })
	require.Positive(t, end)
	pending := map[string]call{}
	for i, line := range lines {
		parts := aLine.FindStringSubmatch(line)
		if parts == nil {
			continue
		}
		c := call{thread: parts[1], text: parts[2], begun: i}
		if at := resume.FindStringIndex(c.text); at != nil {
			c.text, c.begun = pending[c.thread].text+c.text[at[1]:], pending[c.thread].begun
		}
		if begin, unfinished := strings.CutSuffix(c.text, "<unfinished ...>"); unfinished {
			c.text = begin
			pending[c.thread] = c
			continue
		}
		if parts := aCall.FindStringSubmatch(c.text); parts != nil && c.begun < end {
			c.name, c.result = parts[1], number(parts[2])
			all = append(all, c)
		}
	}
	return all
}

// What a server says that it has done is what the kernel was asked to do.
//
//   - Accepted connections are accept4 calls that had a socket for a result, one for one.
//   - Received and sent bytes are the sums of the results of receives and sends on connections of the service. Nothing else
//     counts: not the pages, which have connections of another address.
//   - Sleeps and looks are polls with and without a time to wait. The desk counts them before it answers; then its scheduler
//     looks once more, because the desk may be asked again, and sleeps. If the desk does not finish within a millisecond,
//     as under strace, the scheduler looks between two of its few pieces as well. A sleep that a signal of the runtime
//     interrupts begins again, so there may be one more for each of those.
func TestFiguresAgreeWithStrace(t *testing.T) {
	plainly(t)
	tier.Tool(t, "strace")
	const n, words = 64, 5
	path := folder(t) + "/calls"
	s := launch{echo: actions, flags: append([]string{"-reactors", "2"}, inspectable...), under: []string{
		"strace", "-f", "-yy", "-s", "0", "-o", path, "-e",
		"trace=accept4,epoll_wait,epoll_pwait,epoll_pwait2,read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg",
	}}.start(t)
	s.Pid = child(t, s.Pid)
	v := viewerOf(t, s.Program)
	v.get(t, "/text")
	idle := s.Descriptors(t)

	clients := make([]client, n)
	for i := range clients {
		clients[i] = s.dial(t)
		require.NoError(t, clients[i].SetDeadline(time.Now().Add(2*time.Minute))) // strace makes it slow
		for range words {
			require.NoError(t, ping(clients[i], string(content(uint64(i), 1+i*100))))
		}
	}
	var r inspect.Report
	exectest.Eventually(t, patience, "all of them in the figures", func() bool {
		r = v.report(t)
		return serviceAt(t, r, s.Addr).Open == n
	})
	require.Equal(t, idle+n, s.Descriptors(t))
	require.EqualValues(t, n, r.Sum().Counts["connections"])
	require.EqualValues(t, n, r.Sum().Counts["tasks"])
	for _, c := range clients {
		require.NoError(t, leave(c))
	}
	exectest.Eventually(t, patience, "the end of all in the figures", func() bool {
		r = v.timely(t)
		return serviceAt(t, r, s.Addr).Open == 0
	})
	require.Equal(t, idle, s.Descriptors(t))
	steady(t, 100*time.Millisecond, "schedulers that sleep behind their answers", func() int64 { return switches(s.reactors(t)) })
	s.Stop(t)

	figures, service := r.Sum().Counts, serviceAt(t, r, s.Addr)
	threads := map[string]bool{}
	kernel := map[string]uint64{}
	calls := traced(t, path)
	for _, c := range calls {
		if c.name == "accept4" && strings.Contains(c.text, "<TCP:["+s.Addr+"]>, ") {
			threads[c.thread] = true
			if c.result >= 0 {
				kernel["accepted"]++
			}
		}
	}
	require.Len(t, threads, len(r.Schedulers))
	for _, c := range calls {
		mine := strings.Contains(c.text, "<TCP:["+s.Addr+"->")
		switch c.name {
		case "read", "readv", "recvfrom", "recvmsg":
			if mine && c.result > 0 {
				kernel["receives"]++
				kernel["received"] += uint64(c.result)
			}
		case "write", "writev", "sendto", "sendmsg":
			if mine && c.result > 0 {
				kernel["sends"]++
				kernel["sent"] += uint64(c.result)
			}
		case "epoll_wait", "epoll_pwait", "epoll_pwait2":
			switch {
			case !threads[c.thread]:
			case looks.MatchString(c.text):
				kernel["looks"]++
			default:
				kernel["sleeps"]++
				if strings.Contains(c.text, " EINTR ") {
					kernel["interrupted"]++
				}
			}
		}
	}
	t.Logf("%v", kernel)
	said := uint64(0)
	for i := range uint64(n) {
		said += words * (1 + i*100)
	}
	require.EqualValues(t, n, kernel["accepted"])
	require.Equal(t, kernel["accepted"], service.Accepted)
	require.Equal(t, kernel["accepted"], figures["connections_accepted_total"])
	require.Equal(t, said, kernel["received"])
	require.Equal(t, kernel["received"], figures["received_bytes_total"])
	require.Equal(t, kernel["receives"], figures["receives_total"])
	require.Equal(t, said, kernel["sent"])
	require.Equal(t, kernel["sent"], figures["sent_bytes_total"])
	require.Equal(t, kernel["sends"], figures["sends_total"])
	each := uint64(len(r.Schedulers))
	require.GreaterOrEqual(t, kernel["looks"], figures["looks_total"]+each)
	require.LessOrEqual(t, kernel["looks"], figures["looks_total"]+each*5)
	require.GreaterOrEqual(t, kernel["sleeps"], figures["sleeps_total"]+each)
	require.LessOrEqual(t, kernel["sleeps"], figures["sleeps_total"]+each+kernel["interrupted"])
}

// The load of a scheduler is the time in which it does not sleep. The kernel has that as the time in which its thread had a CPU
// (utime and stime) or waited for one. The call that sleeps takes CPU time as well, a little each time.
func TestLoadAgreesWithProc(t *testing.T) {
	plainly(t)
	p := servePlain(t, append([]string{"-reactors", "1"}, inspectable...)...)
	s, v := &server{Program: p}, viewerOf(t, p)
	for range 2 { // clients that always have requests on their way, and take what comes
		c := dial(t, s.Addr)
		go func() { _, _ = io.Copy(io.Discard, c) }()
		go func() {
			for requests := []byte(strings.Repeat(get, 1000)); ; {
				if _, err := c.Write(requests); err != nil {
					return
				}
			}
		}()
		defer c.Close()
	}
	before, threads := v.timely(t).Schedulers[0], s.threads(t)
	time.Sleep(3 * time.Second)
	after, later := v.timely(t).Schedulers[0], s.threads(t)

	var used, queued time.Duration // of the thread that has worked most: the scheduler's
	for _, th := range later {
		i := slices.IndexFunc(threads, func(x thread) bool { return x.id == th.id })
		if i >= 0 && th.cpu-threads[i].cpu > used {
			used, queued = th.cpu-threads[i].cpu, th.queued-threads[i].queued
		}
	}
	passed := after.Uptime - before.Uptime
	busy := passed - (after.Idle.All() - before.Idle.All())
	slept := after.Counts["sleeps_total"] - before.Counts["sleeps_total"]
	said := fmt.Sprintf("busy for %v of %v, with %v of CPU time and %v of waiting for a CPU, and %d sleeps", busy, passed, used, queued, slept)
	t.Log(said)
	margin := passed/20 + time.Duration(slept)*20*time.Microsecond
	require.Greater(t, busy, passed/4, "too little to compare: "+said)
	require.Greater(t, busy, used-margin, said)
	require.Less(t, busy, used+queued+margin, said)
}
