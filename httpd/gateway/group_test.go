package gateway

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/httpd/client"
)

// groupOf makes a group of back ends A, B, C and so on, with these weights.
func groupOf(c Group, weights ...int) *group {
	for i, w := range weights {
		c.Backends = append(c.Backends, Backend{Address: string(rune('A'+i)) + ":1", Weight: w})
	}
	return newGroup(&c)
}

// chosen returns the names of n choices, and "-" for none.
func (g *group) chosen(n int, now time.Duration, tried ...*backend) (names string) {
	for range n {
		if b := g.choose(now, 0, false, tried); b != nil {
			names += b.Address[:1]
		} else {
			names += "-"
		}
	}
	return names
}

func TestTurns(t *testing.T) {
	require.Equal(t, "AAA", groupOf(Group{}, 1).chosen(3, 0))
	require.Equal(t, "ABCABCABC", groupOf(Group{}, 1, 1, 1).chosen(9, 0))
	require.Equal(t, "ABACBAABACBA", groupOf(Group{}, 3, 2, 1).chosen(12, 0), "smoothly, and not AAABBC")

	g := groupOf(Group{Health: Health{Return: -1}}, 1, 1, 1)
	b, c := g.backends[1], g.backends[2]
	require.Equal(t, "ACAC", g.chosen(4, 0, b), "one that was tried")
	b.state.since.Store(int64(time.Minute))
	require.Equal(t, "ACACACAC", g.chosen(8, 0), "one that is out; the others share what it had")
	require.Equal(t, "BBACBACBA", g.chosen(9, time.Minute), "it is back, and gets one more than its share at most")
	c.state.since.Store(down)
	require.Equal(t, "BABA", g.chosen(4, time.Minute))
	require.Equal(t, "--", g.chosen(2, time.Minute, g.backends[0], b), "only those were tried that are in use")
	b.state.since.Store(down)
	require.Equal(t, "CBCABC", g.chosen(6, time.Minute), "two of three are more than MaxOut")

	least := groupOf(Group{Policy: LeastRequests}, 2, 1, 1)
	var names string
	for range 8 {
		b := least.choose(0, 0, false, nil)
		b.begin()
		names += b.Address[:1]
	}
	require.Equal(t, "ABCAABCA", names)
	least.backends[1].end(0, 0, good)
	require.Equal(t, "B", least.chosen(1, 0))
}

func TestShareGrowsOnReturn(t *testing.T) {
	g := groupOf(Group{}, 1, 1)
	g.backends[1].state.since.Store(int64(time.Minute))
	for at, want := range map[time.Duration]int{0: 9, 1: 9, 5: 33, 10: 50, 3600: 50} {
		names := g.chosen(100, time.Minute+at*time.Second)
		require.InDelta(t, want, strings.Count(names, "B"), 1, at)
	}
}

// Schedulers choose at the same time, and no turn is lost.
func TestTurnsOfSeveralSchedulers(t *testing.T) {
	g := groupOf(Group{}, 2, 1, 1)
	var all sync.WaitGroup
	names := make([]string, 4)
	for i := range names {
		all.Go(func() { names[i] = g.chosen(1000, 0) })
	}
	all.Wait()
	got := strings.Join(names, "")
	require.InDelta(t, 2000, strings.Count(got, "A"), 40)
	require.InDelta(t, 1000, strings.Count(got, "B"), 40)
}

// A key stays with its back end unless that one goes, or a new one comes that is to have it.
func TestKeysStay(t *testing.T) {
	const keys = 8000
	places := func(g *group) (at [keys]string) {
		for key := range at {
			at[key] = g.choose(0, hashOf(fmt.Append(nil, key)), true, nil).Address
		}
		return at
	}
	g := groupOf(Group{Policy: Hash, Key: "path"}, 2, 1, 1)
	before := places(g)
	counts := map[string]int{}
	for _, a := range before {
		counts[a]++
	}
	require.InDelta(t, keys/2, counts["A:1"], keys/50)
	require.InDelta(t, keys/4, counts["B:1"], keys/50)
	g.backends[1].state.since.Store(down)
	moved := map[string]int{}
	for key, a := range places(g) {
		if before[key] == "B:1" {
			moved[a]++
			continue
		}
		require.Equal(t, before[key], a)
	}
	require.InDelta(t, 2*moved["C:1"], moved["A:1"], keys/50, "those of B are shared by weight")
	for key, a := range places(groupOf(Group{Policy: Hash, Key: "path"}, 2, 1, 1, 1)) {
		require.Contains(t, []string{before[key], "D:1"}, a)
	}
}

func TestCookie(t *testing.T) {
	for line, want := range map[string]string{"a=1": "", "xs=1; s=2": "2", "s=": "", "s=a=b;s=c": "a=b", "": "", " s=3 ;x": "3", "S=1": ""} {
		require.Equal(t, want, string(cookie([]byte(line), "s")), line)
	}
}

// An operator learns from the log why a back end is left out.
func TestTheLogSaysWhyABackEndIsOut(t *testing.T) {
	core, lines := observer.New(zap.WarnLevel)
	b := newBackend("g", Backend{Address: "a:1"}, Health{Failures: 2})
	b.state.log.Store(zap.New(core))
	f := &forward{back: b}
	f.blame(&client.Error{Address: "a:1", Err: syscall.ECONNREFUSED})
	f.blame(os.ErrClosed) // of the client
	for range 2 {
		b.begin()
		b.end(1, 0, bad)
	}
	require.Equal(t, 1, lines.Len())
	require.Equal(t, "client: a:1: connection refused", lines.All()[0].ContextMap()["the last"])
}

// What requests show of a back end: g is one that succeeds, b one that fails, and a number lets seconds pass.
func TestHealthByRequests(t *testing.T) {
	for script, want := range map[string]string{
		"bb":                                   "in",
		"bbb":                                  "10s",
		"bbgbb":                                "in",
		"bbbbbbbbb":                            "10s", // begun before
		"bbb 10":                               "in",
		"bbb 10 bbb":                           "20s",
		"bbb 10 bbb 20 bbb":                    "40s",
		"bbb 10 g bbb":                         "20s", // good for less than it was out
		"bbb 10 9 g 1 g bbb":                   "10s",
		"bbb 10 bbb 20 9 g 1 g bbb":            "40s",
		"bbb 10 bbb 20 20 g bbb":               "10s",
		strings.Repeat("bbb 300 ", 20):         "in",
		strings.Repeat("bbb 300 ", 20) + "bbb": "5m0s",
	} {
		b := newBackend("g", Backend{Address: "a:1"}, Health{Failures: 3})
		now := time.Hour
		for _, word := range strings.Fields(script) {
			var seconds int
			if _, err := fmt.Sscan(word, &seconds); err == nil {
				now += time.Duration(seconds) * time.Second
				continue
			}
			for _, c := range word {
				b.begin()
				b.end(now, 0, map[rune]outcome{'g': good, 'b': bad}[c])
			}
		}
		got := "in"
		if b.state.out(now) {
			got = (time.Duration(b.state.since.Load()) - now).String()
		}
		require.Equal(t, want, got, script)
		require.Zero(t, b.active.Load())
	}
	never := newBackend("g", Backend{}, Health{Failures: -1})
	for range 100 {
		never.begin()
		never.end(1, 0, bad)
	}
	require.False(t, never.state.out(1))
}

// The budget against a list of all requests and retries.
func TestBudgetModel(t *testing.T) {
	for seed := range uint64(20) {
		draws := rand.New(rand.NewPCG(seed, 1))
		b := &newGroup(&Group{Retries: 30}).budget
		var asked, retried []int64
		count := func(all []int64, second int64) (n int64) {
			for _, s := range all {
				if s > second-window {
					n++
				}
			}
			return n
		}
		for now := time.Duration(0); len(asked)+len(retried) < 2000; {
			second := int64(now / time.Second)
			switch draws.IntN(4) {
			case 0, 1:
				b.asked(now)
				asked = append(asked, second)
			case 2:
				may := count(retried, second) < leastRetries+count(asked, second)*30/100
				require.Equal(t, may, b.retry(now))
				if may {
					retried = append(retried, second)
				}
			case 3:
				now += time.Duration(math.Pow(draws.Float64(), 9) * float64(15*time.Second))
			}
		}
	}
	require.False(t, newGroup(&Group{Retries: -1}).budget.retry(0), "none")
}

// What is not the fault of a back end does not count against it.
func TestOutcomes(t *testing.T) {
	require.Equal(t, aborted, outcomeOf(&client.Error{Err: client.ErrBusy}))
	require.Equal(t, aborted, outcomeOf(&client.Error{Err: os.NewSyscallError("socket", syscall.EMFILE)}))
	require.Equal(t, aborted, outcomeOf(&client.Error{Err: os.NewSyscallError("socket", syscall.ENFILE)}))
	require.Equal(t, bad, outcomeOf(&client.Error{Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}))
}

// Nobody else says where a request comes from.
func TestForwarding(t *testing.T) {
	for name, want := range map[string]bool{"Forwarded": true, "x-forwarded-for": true, "X-Forwarded-Prefix": true, "X-Forwarded-Server": true,
		"X-Forwarded-": false, "X-Forward": false, "Forwarded-By": false, "f": false} {
		require.Equal(t, want, forwarding([]byte(name)), name)
	}
}
