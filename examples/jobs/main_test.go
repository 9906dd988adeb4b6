package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { exectest.Main(m) }

var binary = exectest.Build{Dir: "."}

// site is a program that runs.
type site struct {
	*exectest.Program
	t     *testing.T
	url   string
	token string
}

func start(t *testing.T, db string, flags ...string) *site {
	t.Helper()
	p := exectest.Start(t, binary.Command(t, append([]string{"-addr", "127.0.0.1:0", "-db", db, "-report", "0"}, flags...)...))
	p.Listens(t, p.Said)
	s := &site{Program: p, t: t, url: "http://" + p.Addr}
	_, s.token = s.ask("GET", "/api/token", nil)
	return s
}

// ask asks for something, and returns the status and the text of the answer.
func (s *site) ask(method, path string, fields map[string]string) (code int, text string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, nil)
	require.NoError(s.t, err)
	for name, value := range fields {
		r.Header.Set(name, value)
	}
	if host := fields["Host"]; host != "" {
		r.Host = host
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: exectest.Patience}
	a, err := client.Do(r)
	require.NoError(s.t, err)
	defer a.Body.Close()
	all, err := io.ReadAll(a.Body)
	require.NoError(s.t, err)
	return a.StatusCode, strings.TrimSpace(string(all))
}

type shown struct {
	Kinds []struct {
		Name   string
		Paused bool
		Counts map[string]int
	}
	Tasks []struct {
		ID                 int
		Kind, Stage, State string
	}
	More bool
}

func (s *site) view(query string) (v shown) {
	s.t.Helper()
	code, text := s.ask("GET", "/api/tasks?"+query, nil)
	require.Equal(s.t, 200, code, text)
	require.NoError(s.t, json.Unmarshal([]byte(text), &v))
	return v
}

// counts adds up the counts of all kinds.
func (v shown) counts() map[string]int {
	all := map[string]int{}
	for _, k := range v.Kinds {
		for state, n := range k.Counts {
			all[state] += n
		}
	}
	return all
}

func newFile(t *testing.T) string { return filepath.Join(t.TempDir(), "jobs.db") }

func TestRequests(t *testing.T) {
	t.Parallel()
	s := start(t, newFile(t), "-queues", "papers", "-host", "jobs.example")
	for _, c := range []struct {
		path string
		code int
		says string
	}{
		{"/api/tasks?kind=picture&n=3", 200, `{"ids":[1,2,3]}`}, // nobody works on pictures
		{"/api/tasks?kind=picture&after=1h&key=one", 200, `{"ids":[4]}`},
		{"/api/tasks?kind=picture&after=1h&key=one", 200, `{"ids":[4]}`}, // the same
		{"/api/tasks?kind=film", 404, `{"error":"stage: the engine does not know this kind of task: \"film\""}`},
		{"/api/tasks?n=10001", 400, `{"error":"jobs: the number of tasks must be from 1 to 10000, not 10001"}`},
		{"/api/tasks?n=x", 400, `{"error":"jobs: \"x\" is not a number of tasks"}`},
		{"/api/tasks?after=5", 400, `{"error":"jobs: \"5\" is not a duration, such as 10s"}`},
		{"/api/tasks?after=-5s", 400, `{"error":"jobs: the delay must not be negative: -5s"}`},
		{"/api/tasks?key=a", 400, `{"error":"jobs: a key is for one task of one kind"}`},
		{"/api/tasks?n=%zz", 400, `{"error":"jobs: the query has a mistake"}`},
		{"/api/tasks?kind=mail&count=3", 400, `{"error":"jobs: there is no parameter \"count\" here"}`},
		{"/api/tasks?n=3&n=4", 400, `{"error":"jobs: the parameter \"n\" comes 2 times"}`},
		{"/api/tasks/1/suspend", 200, `{"changed":true}`},
		{"/api/tasks/1/suspend", 200, `{"changed":false}`},
		{"/api/tasks/1/resume", 200, `{"changed":true}`},
		{"/api/tasks/1/retry", 200, `{"changed":false}`},
		{"/api/tasks/1/cancel", 200, `{"changed":true}`},
		{"/api/tasks/1/eat", 404, `{"error":"jobs: nothing of that name can be asked for"}`},
		{"/api/tasks/99/cancel", 404, `{"error":"stage: no such task: 99"}`},
		{"/api/tasks/x/cancel", 400, `{"error":"jobs: \"x\" is not the number of a task"}`},
		{"/api/kinds/picture/pause", 200, `{"changed":true}`},
		{"/api/kinds/picture/pause", 200, `{"changed":false}`},
		{"/api/kinds/picture/resume", 200, `{"changed":true}`},
		{"/api/kinds/film/pause", 404, `{"error":"stage: the engine does not know this kind of task: \"film\""}`},
	} {
		code, text := s.ask("POST", c.path, map[string]string{"X-Jobs-Token": s.token})
		require.Equal(t, fmt.Sprint(c.code, " ", c.says), fmt.Sprint(code, " ", text), c.path)
	}
	for path, code := range map[string]int{
		"/api/tasks?state=lazy": 400, "/api/tasks?kind=film": 400, "/api/tasks?before=x": 400, "/events?state=lazy": 400,
		"/api/tasks/99": 404, "/api/tasks/x": 400, "/": 200, "/jobs.js": 200, "/nothing": 404, "/?kind=mail": 200,
		"/api/tasks?status=failed": 400, "/events?n=1": 400, "/api/tasks/1?full=yes": 400, "/api/token?x": 400,
	} {
		got, text := s.ask("GET", path, nil)
		require.Equal(t, code, got, "%s: %s", path, text)
	}
	require.Equal(t, map[string]int{"waiting": 3, "cancelled": 1}, s.view("").counts())
	require.Len(t, s.view("state=waiting&kind=picture").Tasks, 3)
	require.Equal(t, 2, s.view("before=3").Tasks[0].ID)
	require.Empty(t, s.view("state=finished").Tasks)
	s.Stop(t)
}

// What another site has a browser ask for changes nothing, and tells it nothing.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	s := start(t, newFile(t), "-host", "jobs.example,other.example")
	own := map[string]string{"X-Jobs-Token": s.token, "Origin": s.url, "Sec-Fetch-Site": "same-origin"}
	for _, c := range []struct {
		field, value string
		code         int
	}{
		{"X-Jobs-Token", s.token, 200},
		{"X-Jobs-Token", "", 403},
		{"X-Jobs-Token", s.token + "x", 403},
		{"Origin", "", 200},
		{"Origin", "http://evil.example", 403},
		{"Origin", "null", 403},
		{"Sec-Fetch-Site", "", 200},
		{"Sec-Fetch-Site", "same-site", 403},
		{"Sec-Fetch-Site", "cross-site", 403},
		{"Host", "evil.example", 421},
	} {
		fields := map[string]string{}
		for name, value := range own {
			fields[name] = value
		}
		if fields[c.field] = c.value; c.value == "" {
			delete(fields, c.field)
		}
		code, text := s.ask("POST", "/api/tasks?n=1", fields)
		require.Equal(t, c.code, code, "%s: %q: %s", c.field, c.value, text)
	}
	code, text := s.ask("GET", "/api/token", map[string]string{"Host": "evil.example"})
	require.Equal(t, 421, code)
	require.NotContains(t, text, s.token)
	for _, host := range []string{"JOBS.example", "other.example:8090", "localhost", "[::1]:8090"} {
		code, _ = s.ask("GET", "/api/token", map[string]string{"Host": host})
		require.Equal(t, 200, code, host)
	}
	for _, path := range []string{"/", "/api/tasks", "/api/tasks/1", "/api/token", "/events"} {
		answer, err := http.Get(s.url + path)
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, []string{"nosniff"}, answer.Header.Values("X-Content-Type-Options"), path)
	}
	s.Stop(t)
}

func newServer(t *testing.T) (s *pgserver.Server, db string) {
	tier.Need(t, tier.Full, "starts PostgreSQL")
	tier.Tool(t, "initdb")
	s, err := pgserver.Start(pgserver.Config{Settings: map[string]string{"fsync": "off"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	db, err = s.Create("jobs")
	require.NoError(t, err)
	return s, db
}

// A page says that the database does not answer, and goes on when it does.
func TestOutage(t *testing.T) {
	t.Parallel()
	server, db := newServer(t)
	s := start(t, db, "-load", "30")
	server.Kill()
	exectest.Eventually(t, exectest.Patience, "an error", func() bool {
		code, text := s.ask("GET", "/api/tasks", nil)
		return code == 503 && strings.Contains(text, `"error"`)
	})
	a, err := http.Get(s.url + "/events")
	require.NoError(t, err)
	line, err := bufio.NewReader(a.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "event: outage\n", line)
	a.Body.Close()
	require.NoError(t, server.Start())
	exectest.Eventually(t, exectest.Patience, "an answer", func() bool {
		code, _ := s.ask("GET", "/api/tasks", nil)
		return code == 200
	})
	s.Stop(t)
}

// Workers take the oldest tasks, and the newest are on the first page.
func TestTasksAtWorkAreAtTheTop(t *testing.T) {
	s := memory.New(nil)
	e, err := stage.New(stage.Config{Store: s, Kinds: kinds, Processors: (&Jobs{}).processors()})
	require.NoError(t, err)
	b := &board{engine: e}
	for range 2*page - 2 {
		_, err = e.Enqueue(t.Context(), "mail", nil)
		require.NoError(t, err)
	}
	_, err = s.Claim(t.Context(), store.Claim{Kinds: []string{"mail"}, Limit: 2, Length: time.Minute})
	require.NoError(t, err)
	first, err := b.view(t.Context(), query{})
	require.NoError(t, err)
	require.True(t, first.More)
	require.Len(t, first.Tasks, page)
	var ids []store.ID
	for _, x := range first.Tasks[:4] {
		ids = append(ids, x.ID)
	}
	require.Equal(t, []store.ID{2, 1, 2*page - 2, 2*page - 3}, ids)
	older, err := b.view(t.Context(), query{before: first.Tasks[page-1].ID})
	require.NoError(t, err)
	require.False(t, older.More)
	require.Len(t, older.Tasks, page)
}

// Two programs work on one database, and are killed by turns while tasks are at work. After each kill, and in the end, every task
// has the steps of the stages that it has reached: each stage has been committed once.
func TestKill(t *testing.T) {
	tier.Need(t, tier.Full, "waits for the ends of leases")
	t.Run("SQLite", func(t *testing.T) { killed(t, newFile(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		_, db := newServer(t)
		killed(t, db)
	})
}

func killed(t *testing.T, db string) {
	t.Parallel()
	const tasks = 60
	programs := [2]*site{start(t, db, "-pace", "20ms", "-load", fmt.Sprint(tasks)), start(t, db, "-pace", "20ms")}
	for i := range 4 {
		victim, other := programs[i%2], programs[1-i%2]
		exectest.Eventually(t, exectest.Patience, "a task at work", func() bool {
			n := other.view("").counts()
			return n["at work"] > 0 || n["finished"]+n["failed"] == tasks
		})
		victim.Signal(t, syscall.SIGKILL)
		exectest.Eventually(t, exectest.Patience, "the end", victim.Gone)
		other.consistent(tasks)
		programs[i%2] = start(t, db, "-pace", "20ms")
	}
	s := programs[0]
	exectest.Eventually(t, exectest.Patience, "all tasks finished", func() bool {
		for _, x := range s.view("state=failed").Tasks {
			s.ask("POST", fmt.Sprintf("/api/tasks/%d/retry", x.ID), map[string]string{"X-Jobs-Token": s.token})
		}
		return s.view("").counts()["finished"] == tasks
	})
	s.consistent(tasks)
	for _, s := range programs {
		s.Stop(t)
	}
}

// consistent requires that each task has the steps of its stages, each counted once.
func (s *site) consistent(tasks int) {
	s.t.Helper()
	for id := range tasks {
		code, text := s.ask("GET", fmt.Sprintf("/api/tasks/%d", id+1), nil)
		require.Equal(s.t, 200, code, text)
		var x struct{ Kind, Stage, Data string }
		require.NoError(s.t, json.Unmarshal([]byte(text), &x))
		var o order
		require.NoError(s.t, json.Unmarshal([]byte(x.Data), &o))
		want := 0
		for i, at := range kinds[x.Kind].Chain.Stages() {
			if at == x.Stage {
				break
			}
			if i%2 == 1 { // a dynamic one
				want += stepsOf(&store.Task{ID: store.ID(id + 1), Stage: at})
			}
		}
		require.Equal(s.t, want, o.Steps, text)
	}
}
