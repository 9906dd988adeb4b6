package inspect

import (
	"bytes"
	"context"
	"net/http"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/stretchr/testify/require"
)

func asIs(*http.Request) {}

// labelsOf returns the labels of goroutines that have the label of a scheduler, as the runtime writes them.
func labelsOf(t *testing.T, name string) (all []string) {
	var out bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&out, 1))
	for line := range strings.Lines(out.String()) {
		if labels, ok := strings.CutPrefix(strings.TrimSpace(line), "# labels: "); ok && strings.Contains(labels, strconv.Quote(name)) {
			all = append(all, labels)
		}
	}
	return all
}

// plainKind is an action with a kind of its own, which calls f once.
type plainKind struct{ f func() }

func (x *plainKind) Act(*act.Task) act.Directive {
	x.f()
	return act.Done
}

func TestTurnsAreLabelledOnlyWhileAProfileIsTaken(t *testing.T) {
	s, _, _ := inspected(t)
	name := probes.Get(s).name
	own := `{"scheduler":"` + name + `"}`
	labelled := func(kind string) []string { return []string{`{"kind":"` + kind + `", "scheduler":"` + name + `"}`} }
	check := func(want []string) {
		got := []string{}
		s.Spawn(&plainKind{func() { got = labelsOf(t, name) }})
		step(t, s)
		require.Equal(t, want, got)
		require.Equal(t, []string{own}, labelsOf(t, name), "between turns")
	}
	check([]string{own})
	labelTurns(true)
	defer labelTurns(false)
	check(labelled("*inspect.plainKind"))
	s.Spawn(&plainKind{func() { labelTurns(false) }})
	step(t, s)
	check([]string{own})
}

// A coroutine is a goroutine with labels of its own. It may have been made before the profile, or for another body.
func TestACoroutineHasTheLabelOfItsTurn(t *testing.T) {
	s, _, _ := inspected(t)
	name := probes.Get(s).name
	var seen []string
	look := func(co *coro.Co) error {
		for range 3 {
			seen = append(seen, strings.Join(labelsOf(t, name), " "))
			co.Yield()
		}
		return nil
	}
	s.Spawn(coro.New(look))
	_, err := s.Step(1)
	require.NoError(t, err)
	labelTurns(true)
	defer labelTurns(false)
	step(t, s)
	require.Len(t, seen, 3)
	require.NotContains(t, seen[0], kindLabel)
	kind := `{"kind":"*coro.routine", "scheduler":"` + name + `"}`
	for _, labels := range seen[1:] {
		require.Equal(t, kind+" "+kind, labels, "of the scheduler's goroutine and of the coroutine")
	}
}

// The goroutines of the Executor serve all kinds.
func TestAFunctionThatIsOffloadedHasNoLabel(t *testing.T) {
	x := running(t, 1)
	labelTurns(true)
	defer labelTurns(false)
	seen := make(chan string)
	require.NoError(t, x.desks[0].probe.s.Post(func(s *act.Scheduler) {
		s.Spawn(&act.Call[bool]{F: func() (bool, error) {
			var out bytes.Buffer
			err := pprof.Lookup("goroutine").WriteTo(&out, 1)
			seen <- out.String()
			return true, err
		}})
	}))
	n := 0
	for _, goroutine := range strings.Split(<-seen, "\n\n") {
		if strings.Contains(goroutine, "HasNoLabel.func") && strings.Contains(goroutine, "pool.(*Pool).work") {
			n++
			require.NotContains(t, goroutine, "# labels:")
		}
	}
	require.Equal(t, 1, n)
}

func TestProfilesAreServed(t *testing.T) {
	x, at := visited(t)
	at += "/debug/pprof/"
	const secret = "?token=secret"
	for path, code := range map[string]int{
		"": 401, "heap": 401, "profile": 401, secret: 200,
		"heap" + secret + "&gc=1": 200, "allocs" + secret: 200, "mutex" + secret: 200, "block" + secret: 200,
		"threadcreate" + secret: 200, "goroutine" + secret: 200, "cmdline" + secret: 404,
		"profile" + secret + "&seconds=0": 400, "profile" + secret + "&seconds=121": 400, "profile" + secret + "&seconds=x": 400,
		"trace" + secret: 404, "heap" + secret + "&seconds=1": 400, "heap" + secret + "&debug=x": 400,
	} {
		got, kind, body := get(t, at+path, asIs)
		require.Equal(t, code, got, path)
		if kind == "application/octet-stream" {
			require.Equal(t, "\x1f\x8b", body[:2], "gzip, as the format of pprof wants")
		}
	}
	code, _, _ := get(t, at+secret, func(r *http.Request) { r.Host = "evil.example" })
	require.Equal(t, 421, code)

	_, kind, body := get(t, at+"goroutine"+secret+"&debug=1", asIs)
	require.Equal(t, plainText, kind)
	require.Contains(t, body, strconv.Quote(x.desks[0].probe.name))
}

func TestATextIsOfASecond(t *testing.T) {
	tier.Need(t, tier.Full, "takes a second")
	_, at := visited(t)
	code, kind, body := get(t, at+"/text?token=secret&seconds=1", asIs)
	require.Equal(t, 200, code)
	require.Equal(t, plainText, kind)
	require.Regexp(t, `rates \(/s\) and latencies of schedulers are of the last \d`, body)
}

// A client that goes ends its profile, so another one can take one.
func TestOneProfileIsTakenAtATime(t *testing.T) {
	_, at := visited(t)
	ctx, goAway := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", at+"/debug/pprof/profile?token=secret&seconds=120", nil)
	require.NoError(t, err)
	gone := make(chan error)
	go func() {
		_, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		gone <- err
	}()
	require.Eventually(t, profiling.Load, servertest.Timeout, time.Millisecond)
	code, _, body := get(t, at+"/debug/pprof/profile?token=secret", asIs)
	require.Equal(t, 503, code)
	require.Contains(t, body, "in use")
	code, _, _ = get(t, at+"/text?token=secret&seconds=0", asIs)
	require.Equal(t, 200, code, "other pages are served meanwhile")
	goAway()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.Eventually(t, func() bool { return !profiling.Load() }, servertest.Timeout, time.Millisecond)
}

// A program that has a hash computed for long is named, and not the hash.
func TestTheCulpritHasAskedTheStandardLibrary(t *testing.T) {
	for _, row := range []struct {
		stack []string
		want  string
	}{
		{[]string{"crypto/internal/fips140/sha256.block", "crypto/sha256.Sum256", "main.thumbnail", actPath + ".Func.Act"}, "main.thumbnail"},
		{[]string{"sort.Slice", "example.com/a/b.(*T).sorted.func1", "main.serve"}, "example.com/a/b.(*T).sorted.func1"},
		{[]string{"syscall.RawSyscall6", "golang.org/x/sys/unix.Read", "example.com/a.read"}, "example.com/a.read"},
		{[]string{"regexp.(*Regexp).match", actPath + ".Func.Act"}, ""},
	} {
		var frames []runtime.Frame
		for _, f := range row.stack {
			frames = append(frames, runtime.Frame{Function: f, File: "x.go", Line: 1})
		}
		var s stall
		s.write(frames)
		require.Equal(t, row.want, s.Func)
	}
}

// What was broken: the pages' scheduler was started on the first one of the server, and had its label.
func TestTheStackOfTheFirstSchedulerIsNotThatOfThePages(t *testing.T) {
	x := &Inspector{Address: "127.0.0.1:0", Token: "secret", Watch: Watch{Limit: -1}}
	runs(t, x, act.Config{Schedulers: 1})
	stuck, free := make(chan struct{}), make(chan struct{})
	require.NoError(t, x.desks[0].probe.s.Post(func(*act.Scheduler) {
		close(stuck)
		<-free
	}))
	<-stuck
	defer close(free)
	var all bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&all, 1))
	n := 0
	for _, stack := range labelled(all.String(), x.desks[0].probe.name) {
		if contains(stack, schedulerMethod) {
			n++
		}
	}
	require.Equal(t, 1, n)
}
