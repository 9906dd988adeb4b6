package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/exectest"
)

// watch has two viewers look at a program without a pause until it ends: one at /events, one at /json. Each answer has to be
// whole. The function that it returns is for the time after that. It returns what went wrong before the server had ended.
func (s *server) watch(t *testing.T) (ended func() error) {
	t.Helper()
	live, poll := viewerOf(t, s.Program), viewerOf(t, s.Program)
	live.Timeout = 0
	r, err := http.NewRequest("GET", live.at+"/events", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+secretToken)
	stream, err := live.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = stream.Body.Close() })
	_, _ = poll.get(t, "/json")
	var seen [2]atomic.Int64
	var broken [2]error
	var last [2]time.Time
	over := make(chan error, 1)
	go func() {
		over <- together(2, func(i int) error {
			if i == 0 {
				broken[i] = eachEvent(stream, func() { seen[i].Add(1) })
			} else {
				broken[i] = poll.eachReport(func() { seen[i].Add(1) })
			}
			last[i] = time.Now()
			return nil
		})
	}()
	return func() error { // the server has ended
		<-over
		t.Logf("%d events, %d answers", seen[0].Load(), seen[1].Load())
		logged := regexp.MustCompile(`(\S+)\tINFO\tended in order`).FindStringSubmatch(s.Said())
		require.NotNil(t, logged)
		end, err := time.Parse("2006-01-02T15:04:05.000Z0700", logged[1])
		require.NoError(t, err)
		for i, err := range broken {
			if last[i].Before(end) { // the pages end behind that
				return fmt.Errorf("%v before the end: %w", end.Sub(last[i]), err)
			}
		}
		return nil
	}
}

// eachEvent returns when the stream ends.
func eachEvent(stream *http.Response, seen func()) error {
	in := bufio.NewScanner(stream.Body)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if text, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			if err := wholeReport(text); err != nil {
				return err
			}
			seen()
		}
	}
	return fmt.Errorf("no more events: %v", in.Err())
}

// eachReport returns when there is no answer.
func (v *viewer) eachReport(seen func()) error {
	for {
		status, _, body, err := v.ask("/json", nil)
		if err == nil && status != 200 {
			err = fmt.Errorf("status %d", status)
		}
		if err == nil {
			err = wholeReport(body)
		}
		if err != nil {
			return err
		}
		seen()
		time.Sleep(20 * time.Millisecond)
	}
}

// wholeReport wants a Report.
func wholeReport(text string) error {
	var r inspect.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	if len(r.Schedulers) == 0 {
		return fmt.Errorf("no schedulers in %q", text)
	}
	return nil
}

// shows waits until the figures are these: of the service, of the schedulers, and of the kind of its tasks. A service that has
// ended, under an order, is no longer listed: its connections are.
func (s *server) shows(t *testing.T, v *viewer, open, accepted int) {
	t.Helper()
	type figures struct{ Service, Accepted, AcceptedInAll, Connections, Tasks, Kind int }
	want := figures{open, accepted, accepted, open, open, open}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		report := v.report(t)
		r := report.Sum()
		last := figures{
			AcceptedInAll: int(r.Counts["connections_accepted_total"]), Connections: int(r.Counts["connections"]), Tasks: int(r.Counts["tasks"]),
		}
		for _, x := range r.Kinds {
			if x.Name == "tcp "+s.Addr {
				last.Kind = x.Alive
			}
		}
		for _, x := range r.Services {
			last.Service, last.Accepted = x.Open, int(x.Accepted)
		}
		if last == want {
			return
		}
		require.True(t, time.Now().Before(deadline), "%+v, not %+v", last, want)
	}
}

// pinging has clients talk until the function is called that it returns, which wants that each was answered.
func pinging(all []client) (end func() error) {
	var over atomic.Bool
	done := make(chan error, 1)
	go func() {
		done <- together(len(all), func(i int) error {
			for !over.Load() {
				if err := ping(all[i], "chaos"); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
			return nil
		})
	}()
	return func() error {
		over.Store(true)
		return <-done
	}
}

// Ten thousand connections come and go, twice, while some of them talk and two viewers look. Whenever nothing comes or goes the
// pages have the counts of the clients, also under an order to end, and until the last client has gone.
func TestPagesStayRightWhileThousandsComeAndGo(t *testing.T) {
	plainly(t)
	const n, busy = 10_000, 20
	exectest.AllowDescriptors(t, n+300)
	s := actions.start(t, append([]string{"-drain", "2m"}, inspectable...)...)
	v := viewerOf(t, s.Program)
	ended := s.watch(t)
	s.shows(t, v, 0, 0)
	s.warm(t)
	accepted := 64
	s.shows(t, v, 0, accepted)
	idle := s.Descriptors(t)

	var peaks [2]int
	var all []client
	for round := range peaks {
		all = make([]client, n)
		for i := range all {
			c, err := s.connect()
			require.NoError(t, err)
			defer reset(c)
			require.NoError(t, c.SetDeadline(time.Now().Add(3*time.Minute)))
			require.NoError(t, ping(c, "hello"))
			all[i] = c
		}
		accepted += n
		quiet := pinging(all[:busy])
		s.shows(t, v, n, accepted)
		require.Equal(t, idle+n, s.Descriptors(t))
		peaks[round] = s.Peak(t)
		for i := n / 2; i < n; i++ {
			if i%2 == 0 {
				reset(all[i])
				continue
			}
			require.NoError(t, leave(all[i]))
		}
		s.shows(t, v, n/2, accepted)
		require.NoError(t, quiet())
		if round > 0 {
			break
		}
		for _, c := range all[:n/2] {
			reset(c)
		}
		s.shows(t, v, 0, accepted)
		require.LessOrEqual(t, s.Descriptors(t), idle)
	}
	t.Logf("%d and %d MiB at the most", peaks[0]>>20, peaks[1]>>20)
	require.Less(t, peaks[1], peaks[0]+8<<20, "the memory of those that have gone is used again")

	s.Signal(t, syscall.SIGTERM)
	exectest.Eventually(t, patience, "an order that is in force everywhere", func() bool {
		return !slices.ContainsFunc(v.report(t).Schedulers, func(x *inspect.Scheduler) bool { return x.Ends == nil })
	})
	_, err := s.connect()
	require.Error(t, err)
	s.shows(t, v, n/2, accepted)
	for _, c := range all[n/4 : n/2] {
		require.NoError(t, leave(c))
	}
	s.shows(t, v, n/4, accepted)
	require.NoError(t, ping(all[0], "still here"))
	for _, c := range all[1 : n/4] {
		reset(c)
	}
	s.shows(t, v, 1, accepted)
	require.NoError(t, leave(all[0]))
	require.Zero(t, s.Exit(t))
	require.NoError(t, ended())
	require.Contains(t, s.Said(), "ended in order")
}

// The pages go on for those that look already when the server has no descriptor left for anybody.
func TestPagesStayRightWithoutDescriptors(t *testing.T) {
	plainly(t)
	s := launch{echo: actions, under: limited(64), flags: append([]string{"-max-conns", "1000"}, inspectable...)}.start(t)
	v := viewerOf(t, s.Program)
	s.shows(t, v, 0, 0)
	ended := s.watch(t)
	served, waiting := s.crowd(t, 100)
	require.NotEmpty(t, waiting)
	s.shows(t, v, len(served), len(served))
	require.Positive(t, serviceAt(t, v.report(t), s.Addr).Shortages)
	resumes(t, served, waiting)
	s.shows(t, v, 0, 100)
	s.Stop(t)
	require.NoError(t, ended())
}
