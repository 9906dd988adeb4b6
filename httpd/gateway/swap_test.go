package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// farm is a world with a gateway on 10.0.0.9 and back ends on 10.0.0.1 and so on. They have clocks and no faults.
type farm struct {
	*testing.T
	*sim.World
	g       *Gateway
	gateway *sim.Server       // of it, in worlds of through
	sick    [3]bool           // answers 500 to checks
	conns   [3]map[string]int // requests on each connection of a client
}

func farmOf(t *testing.T, table *Table) *farm {
	f := &farm{T: t, World: sim.New(sim.Options{Seed: 1}), g: &Gateway{}}
	f.g.Swap(table)
	for i := range f.sick {
		f.conns[i] = map[string]int{}
		site := httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
			switch path := string(r.Path()); {
			case path == "/healthz" && f.sick[i]:
				w.StatusOnly(500)
			case path == "/slow":
				return act.Seq(&listener.Sleep{For: 10 * time.Second}, act.Func(func(*act.Task) act.Directive {
					fmt.Fprint(w, i)
					return act.Done
				}))
			case path == "/503":
				w.StatusOnly(503)
			case path != "/healthz":
				f.conns[i][r.RemoteAddr().String()]++
				fmt.Fprint(w, i)
			}
			return nil
		}}
		f.serve(fmt.Sprintf("10.0.0.%d:80", i+1), site.Serve)
	}
	web := httpd.Server{Handler: f.g.Serve}
	f.serve("10.0.0.9:80", web.Serve, f.g.Setup)
	return f
}

func (f *farm) serve(address string, h func(*listener.Conn) act.Action, setup ...func(*act.Scheduler) error) *sim.Server {
	l := &service.Listener{Address: address, Handler: h}
	v, err := f.Server(address, act.Config{Schedulers: 1}, append(setup, l.Setup)...)
	require.NoError(f, err)
	return v
}

// get sends requests with these paths, each with the field K if it has a colon after it, and returns the contents of the
// answers, or the statuses of errors.
func get(c *sim.Client, paths ...string) (all string) {
	in := bufio.NewReader(c)
	for _, path := range paths {
		path, key, keyed := strings.Cut(path, ":")
		if keyed {
			key = "\r\nK: " + key + "\r\nCookie: k=" + key
		}
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x%s\r\n\r\n", path, key)
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return err.Error()
		}
		content, _ := io.ReadAll(r.Body)
		if r.StatusCode != 200 {
			content = strconv.AppendInt(nil, int64(r.StatusCode), 10)
		}
		all += string(content)
	}
	return all
}

// of returns a Table of one group with these back ends, whose paths begin with this.
func of(t *testing.T, path string, numbers ...int) *Table {
	g := Group{Name: "site", Health: Health{Path: "/healthz", Interval: time.Second, Return: -1, Rise: 2, Fall: 3}}
	for _, n := range numbers {
		g.Backends = append(g.Backends, Backend{Address: fmt.Sprintf("10.0.0.%d:80", n+1)})
	}
	return tableOf(t, Config{Groups: []Group{g}, Routes: []Route{{Path: path, Group: "site"}}})
}

func TestChecks(t *testing.T) {
	f := farmOf(t, of(t, "", 0, 1))
	many := slices.Repeat([]string{"/"}, 6)
	f.Client("10.0.0.9:80", func(c *sim.Client) error {
		require.Equal(t, "010101", get(c, many...))
		f.sick[0] = true
		c.Sleep(4500 * time.Millisecond)
		require.Equal(t, "111111", get(c, many...), "after three checks")
		f.sick[0] = false
		c.Sleep(time.Second)
		require.Equal(t, "111111", get(c, many...), "one good check is not enough")
		c.Sleep(time.Second)
		require.Equal(t, "001010", get(c, many...))
		f.sick = [3]bool{true, true}
		c.Sleep(5 * time.Second)
		require.Equal(t, 3, strings.Count(get(c, many...), "0"), "all are sick, so all are used")
		require.Equal(t, "503", get(c, "/503"))
		return nil
	})
	require.NoError(t, f.World.Run())
	table := f.g.table.Load()
	require.Equal(t, []any{
		&facts.Route{Name: "/", Group: "site", Requests: 31, Failed: 1, Retries: 1},
		&facts.Backend{Name: "site 10.0.0.1:80", State: "left out", Requests: 11, Failed: 1, Outs: 2},
		&facts.Backend{Name: "site 10.0.0.2:80", State: "left out", Requests: 21, Failed: 1, Outs: 1},
	}, withoutTimes(table.list(f.Now(), nil)))
}

func withoutTimes(rows []any) []any {
	for _, row := range rows {
		if b, is := row.(*facts.Backend); is {
			b.Took = 0
		}
	}
	return rows
}

// A request that is under way keeps its Table. A back end that is in both keeps its connections, and one that is in neither is closed.
func TestSwap(t *testing.T) {
	first := of(t, "", 0, 1)
	f := farmOf(t, first)
	a, b := first.backends[0], first.backends[1]
	f.Client("10.0.0.9:80", func(c *sim.Client) error {
		require.Equal(t, "0", get(c, "/slow"), "of a back end that is in no Table any more")
		require.Zero(t, first.uses.Load())
		require.Zero(t, a.tables.Load())
		call, cause := &client.Call{Origin: a.origin}, error(nil)
		require.NoError(t, f.g.first.Post(func(s *act.Scheduler) {
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				d := call.Act(t)
				cause = t.Err()
				return d
			}))
		}))
		c.Sleep(time.Second)
		require.ErrorContains(t, cause, "closed")
		return nil
	})
	f.Client("10.0.0.9:80", func(c *sim.Client) error {
		c.Sleep(time.Second)
		require.Equal(t, "101", get(c, "/", "/", "/"))
		f.g.Swap(of(t, "/new", 1, 2))
		require.Equal(t, "404", get(c, "/"))
		require.Equal(t, "2212", get(c, "/new", "/new", "/new", "/new"))
		require.Same(t, b, f.g.table.Load().backends[0])
		require.Len(t, f.conns[1], 1, "its connection is used on")
		require.EqualValues(t, 1, first.uses.Load())
		require.EqualValues(t, 1, a.tables.Load())
		return nil
	})
	require.NoError(t, f.World.Run())
}

// Requests with one key go to one back end, and requests without take turns.
func TestKeys(t *testing.T) {
	var c Config
	for _, key := range []string{"source", "path", "header:K", "cookie:k"} {
		g := Group{Name: key, Policy: Hash, Key: key}
		for n := range 3 {
			g.Backends = append(g.Backends, Backend{Address: fmt.Sprintf("10.0.0.%d:80", n+1)})
		}
		kind, _, _ := strings.Cut(key, ":")
		c.Groups, c.Routes = append(c.Groups, g), append(c.Routes, Route{Path: "/" + kind, Group: key})
	}
	f := farmOf(t, tableOf(t, c))
	f.Client("10.0.0.9:80", func(c *sim.Client) error {
		require.Equal(t, 6, strings.Count(get(c, "/source", "/source/a", "/source:1", "/source:2", "/source:3", "/source:4"), get(c, "/source")))
		require.Equal(t, "002220", get(c, "/path/1", "/path/1", "/path/2", "/path/3", "/path/3", "/path/5"))
		for _, path := range []string{"/header", "/cookie"} {
			require.Equal(t, "220", get(c, path+":1", path+"/x:1", path+":7"))
			require.Equal(t, "0", strings.Trim(get(c, path, path, path), "12"), "each has a turn")
		}
		return nil
	})
	require.NoError(t, f.World.Run())
}
