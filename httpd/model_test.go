package httpd_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Whatever a handler does to its Response, in whatever order: the client either gets a response whose end it can see,
// followed by the next one or the end of the connection, as the head says; or the connection is reset.
func TestRandomHandlersGiveFramedResponses(t *testing.T) {
	kinds := []string{"write", "write", "write", "flush", "status", "length", "whole", "error", "close", "file", "trailer", "wait",
		"yield", "field"}
	sizes := []int{0, 1, 3, 10, 4096, 5000, 100_000}
	f := fileOf(t, 200_000)
	seeds := tier.Choose[uint64](3000, 5000, 100_000)
	if race.Enabled {
		seeds /= 10
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 0))
		var all []step
		for range 1 + r.IntN(5) {
			s := step{what: kinds[r.IntN(len(kinds))], n: sizes[r.IntN(len(sizes))]}
			switch s.what {
			case "status":
				s.n = []int{200, 204, 304, 404, 206}[s.n%5]
			case "error":
				s.n = []int{404, 500, 304}[s.n%3]
			}
			all = append(all, s)
		}
		method, version := []string{"GET", "HEAD"}[r.IntN(2)], []string{"0", "1", "1", "1"}[r.IntN(4)]
		first := true
		handler := func(w *httpd.Response, _ *httpd.Request) act.Action {
			if !first {
				_, _ = w.WriteString("second")
				return nil
			}
			first = false
			return steps(all, f, w)
		}
		d := newDriver(t)
		c := d.dialOver(&httpd.Server{Handler: handler}, listener.Limits{}, []func(*wire) monitor.Stream{plainStream, fileStream}[seed%2])
		if r.IntN(3) == 0 {
			c.room = 1000
		}
		c.send(method + " / HTTP/1." + version + "\r\nHost: x\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
		for range 50 {
			c.take(10_000)
			d.settle()
		}
		require.Empty(t, fault(c, method, version), "seed %d: %s HTTP/1.%s %v\n%s: %.300q", seed, method, version, all, c.state, c.received())
		_ = d.s.Close() // the connection is open where it should be
	}
}

// fault returns what is wrong with what the client has received.
func fault(c *client, method, version string) string {
	out := string(c.out)
	if c.state == aborted && !strings.Contains(out, "\r\n\r\n") {
		return ""
	}
	all, err := understand(out, c.state != open, asked{head: method == "HEAD", old: version == "0"})
	switch {
	case c.state == aborted && len(all) > 0:
		return ""
	case err != nil:
		return err.Error()
	case len(all) == 0 || slices.ContainsFunc(all, func(a answer) bool { return a.cut }):
		return "cut, and the end is orderly"
	case len(all) == 1 && all[0].closes && c.state == closed:
		return ""
	case len(all) == 2 && all[1].body == "second" && c.state == open:
		return ""
	}
	return "no second response, or more than that"
}
