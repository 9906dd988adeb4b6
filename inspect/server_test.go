package inspect

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// visited starts the pages of an Inspector of two schedulers, and returns their address.
func visited(t testing.TB) (x *Inspector, at string) {
	x = running(t, 2)
	return x, visit(t, x)
}

// visit starts the pages of x.
func visit(t testing.TB, x *Inspector) string {
	x.Address, x.Token = "127.0.0.1:0", "secret"
	core, logs := observer.New(zapcore.InfoLevel)
	v, err := x.serve(zap.New(core))
	require.NoError(t, err)
	t.Cleanup(v.close)
	said := logs.FilterMessageSnippet("inspect at").All()
	require.Len(t, said, 1)
	at, found := strings.CutPrefix(said[0].Message, "inspect at ")
	require.True(t, found)
	at, found = strings.CutSuffix(at, "/")
	require.True(t, found, "the token is not logged")
	return at
}

func get(t *testing.T, url string, change func(*http.Request)) (code int, kind, body string) {
	r, err := http.NewRequest("GET", url, nil)
	require.NoError(t, err)
	change(r)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := client.Do(r)
	require.NoError(t, err)
	defer a.Body.Close()
	all, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return a.StatusCode, a.Header.Get("Content-Type"), string(all)
}

func TestPagesAreShownOnlyToThoseThatHaveTheToken(t *testing.T) {
	_, at := visited(t)
	host := strings.TrimPrefix(at, "http://")
	_, port, _ := strings.Cut(host, ":")
	for _, c := range []struct {
		name, host, query, bearer string
		code                      int
	}{
		{"in the address", host, "?token=secret&seconds=0", "", 200},
		{"in a field", host, "?seconds=0", "secret", 200},
		{"by the name LOCALHOST", "LOCALHOST:" + port, "?token=secret&seconds=0", "", 200},
		{"by the name localhost", "localhost:" + port, "?token=secret&seconds=0", "", 200},
		{"by an address of IPv6", "[::1]:" + port, "?token=secret&seconds=0", "", 200},
		{"for longer than a minute", host, "?token=secret&seconds=61", "", 400},
		{"without", host, "", "", 401},
		{"a wrong one", host, "?token=secre", "", 401},
		{"a wrong one in a field", host, "?token=secret", "x", 401},
		{"in a query with a mistake", host, "?token=secret&find=%zz", "", 400},
		{"by a name that may be somebody else's", "evil.example:" + port, "?token=secret", "", 421},
		{"by a name that begins like an address", "127.0.0.1.evil.example", "?token=secret", "", 421},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, body := get(t, at+"/text"+c.query, func(r *http.Request) {
				if r.Host = c.host; c.bearer != "" {
					r.Header.Set("Authorization", "bearer "+c.bearer)
				}
			})
			require.Equal(t, c.code, code)
			require.Equal(t, code == 200, strings.Contains(body, "2 schedulers"))
		})
	}
}

func TestWithoutATokenThePagesStayOnThisMachine(t *testing.T) {
	_, err := (&Inspector{Address: "0.0.0.0:0"}).serve(zap.NewNop())
	require.ErrorContains(t, err, "choose a token")
	_, err = (&Inspector{Address: "6060"}).serve(zap.NewNop())
	require.ErrorContains(t, err, "6060")
}

func TestTheSameIsInAllForms(t *testing.T) {
	x, at := visited(t)
	censused(t, x)
	plain := func(*http.Request) {}

	code, kind, body := get(t, at+"/json?token=secret", plain)
	require.Equal(t, 200, code)
	require.Equal(t, "application/json", kind)
	var r report
	require.NoError(t, json.Unmarshal([]byte(body), &r))
	var shown page
	require.NoError(t, json.Unmarshal([]byte(body), &shown))
	require.Contains(t, shown.Title, "2 schedulers")
	require.Equal(t, "schedulers", shown.Tables[0].Name)
	require.Len(t, r.Schedulers, 2)
	require.EqualValues(t, 1, r.Schedulers[1].Counts["tasks"])
	require.NotContains(t, body, `"waits"`, "nobody has asked for tasks")

	_, _, body = get(t, at+"/tasks.json?token=secret&find=the+end", plain)
	var l listing
	require.NoError(t, json.Unmarshal([]byte(body), &l))
	require.Equal(t, 4, l.Total, "two tasks and two desks")
	require.Equal(t, 2, l.Matching)
	require.Equal(t, []string{"the end"}, l.Tasks[1].Waits)
	require.Equal(t, [][]string{{"*inspect.waiter", "2", "2", "the end"}}, l.Tables[0].Rows)

	_, kind, body = get(t, at+"/tasks?token=secret&find=waiter", plain)
	require.Equal(t, "text/plain; charset=utf-8", kind)
	require.Regexp(t, `(?m)^1/2 +waiting .* the end$`, body)
	require.NotContains(t, body, "desk", "it was not looked for")

	_, kind, body = get(t, at+"/metrics?token=secret", plain)
	require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", kind)
	samples := metricsOf(t, body)
	require.EqualValues(t, 1, samples[`daimon_tasks{scheduler="1"}`])
	require.EqualValues(t, 2, samples[`daimon_kind_tasks{kind="*inspect.waiter"}`])
	require.Contains(t, samples, `daimon_idle_seconds_total{scheduler="1",how="asleep"}`)
	require.Contains(t, samples, `daimon_stall_seconds_bucket{le="+Inf"}`)
	require.Contains(t, samples, `daimon_timers{scheduler="1"}`)
	require.Contains(t, samples, `daimon_offloads_running{scheduler="0"}`)
	require.Contains(t, samples, `daimon_turn_seconds_bucket{scheduler="0",le="+Inf"}`)

	_, kind, body = get(t, at+"/last?token=secret&scheduler=1", plain)
	require.Equal(t, plainText, kind)
	require.Regexp(t, `\nScheduler 1, [\s\S]*spawned +1 +\*inspect\.waiter +2`, body)
	require.NotContains(t, body, "Scheduler 0")
	for _, wrong := range []string{"/nowhere?", "/last?scheduler=-1&", "/last?scheduler=x&"} {
		code, _, _ = get(t, at+wrong+"token=secret", plain)
		require.Equal(t, 404, code, wrong)
	}
}

// Prometheus drops a page that is not UTF-8. The path of a Unix socket need not be, and an action may say anything.
func TestWhatIsNotUTF8IsReplaced(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have file names of UTF-8")
	}
	path := filepath.Join(servertest.ShortDir(t), "\xff")
	x, odd := &Inspector{}, &service.Listener{Address: "unix:" + path, Handler: func(*listener.Conn) act.Action { return nil }}
	core, logs := observer.New(zapcore.InfoLevel)
	t.Cleanup(startRun(t, x, act.Config{Schedulers: 1, Logger: zap.New(core)}, odd.Setup, func(s *act.Scheduler) error {
		s.Spawn(&waiter{what: "\xfe"})
		s.Logger().With(zap.Int("n", 1)).Info("\xfd")
		return nil
	}))
	at := visit(t, x)
	require.True(t, utf8.ValidString(censused(t, x).Schedulers[0].Services[0].Name), "the same in all forms")
	for _, page := range []string{"text?seconds=0", "tasks?", "metrics?", "json?", "tasks.json?", "last?"} {
		code, _, body := get(t, at+"/"+page+"&token=secret", func(*http.Request) {})
		require.Equal(t, 200, code, page)
		require.True(t, utf8.ValidString(body), page)
		require.Regexp(t, "\uFFFD|"+`\\ufffd`, body, page)
	}
	recorded := string(x.recorded(&recording{}, recordings{}))
	require.True(t, utf8.ValidString(recorded))
	require.Equal(t, 2, logs.FilterMessageSnippet("\uFFFD").Len(), "at most … connections on it, and the other one: %v", logs.All())
}

// metricsOf reads the text format of Prometheus: each name has a text and its type first, and all its samples after
// them.
func metricsOf(t *testing.T, text string) map[string]float64 {
	samples, seen, kind, now, helped := map[string]float64{}, map[string]bool{}, "", "", ""
	for in := bufio.NewScanner(strings.NewReader(text)); in.Scan(); {
		line := in.Text()
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, text, _ := strings.Cut(rest, " ")
			require.NotEmpty(t, text, name)
			helped = name
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			now, kind, _ = strings.Cut(rest, " ")
			require.Equal(t, helped, now)
			require.False(t, seen[now], now)
			seen[now] = true
			require.Contains(t, []string{"counter", "gauge", "histogram"}, kind)
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		require.NoError(t, err, line)
		name, _, _ := strings.Cut(line, "{")
		if kind == "histogram" {
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		}
		require.Equal(t, now, name, line)
		samples[line[:at]] = value
	}
	return samples
}

// TestEachCountHasAMeaning reads the sources of the module: each name that a function like that of facts.Counter adds is in help.
func TestEachCountHasAMeaning(t *testing.T) {
	counted := 0
	require.NoError(t, fs.WalkDir(os.DirFS(".."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "sim/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != "Counts" || f.Type.Results != nil { // stores of package stage have another one
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					name, err := strconv.Unquote(text.Value)
					require.NoError(t, err)
					name = strings.ReplaceAll(name, "%d", "1")
					require.NotEmpty(t, help[name], "%s: %s", path, name)
					counted++
				}
				return true
			})
		}
		return nil
	}))
	require.Greater(t, counted, 40)
}

// squeezed is the text of a Report with one space between two cells.
func squeezed(r, before *report) string {
	var out strings.Builder
	r.page(before).writeTo(&out)
	return regexp.MustCompile(` +`).ReplaceAllString(out.String(), " ")
}

// The text has what has happened since an earlier Report, and a dash for what is not known.
func TestTheTextHasRates(t *testing.T) {
	begun := time.Unix(1e9, 0)
	at := func(after time.Duration, busy time.Duration, n uint64) *report {
		s := &scheduler{
			State: "asleep", Uptime: time.Minute + after, Idle: idleTime{Asleep: time.Minute + after - busy},
			Counts:   map[string]uint64{"tasks": 3, "turns_total": 1000 + n, "received_bytes_total": 4 * n},
			Kinds:    []kindRow{{Name: "a", Alive: 3, Turns: 1000 + n, Woken: 500 + n/2}},
			Services: []facts.Service{{Name: "tcp", Accepted: n / 100}},
		}
		for range n / 64 {
			s.Turns.add(100 * time.Microsecond)
			s.Kinds[0].Took.add(100 * time.Microsecond)
		}
		return &report{Time: begun.Add(after), Schedulers: []*scheduler{s}}
	}
	text := squeezed(at(2*time.Second, time.Second, 640), at(0, 0, 0))
	require.Contains(t, text, "1 scheduler, 3 tasks; loads, rates (/s) and latencies of schedulers are of the last 2s\n")
	require.Contains(t, text, "\n0 3 0 320 50% 50% 0% 0% 100µs 100µs - - asleep\n")
	require.Contains(t, text, "\na 3 0 0 1640 320 820 160 100µs 100µs 100µs - - -\n")
	require.Contains(t, text, "\ntcp 0 0 6 3 0 ")
	require.Contains(t, text, "\nreceived_bytes_total 2560 1280 Bytes")
	require.Contains(t, text, "\ntasks 3 Tasks", "of this moment, so without a rate")

	text = squeezed(at(0, time.Minute, 6400), nil)
	require.Contains(t, text, "schedulers are of the time since the start\n")
	require.Contains(t, text, "\n0 3 0 123 100% 0% 0% 0% ")
	text = squeezed(at(time.Second, 0, 640), at(time.Second, 0, 640))
	require.Contains(t, text, "\n0 3 0 - - - - - - - - - asleep\n", "it did not answer meanwhile")
}

type collect func(add func(Metric))

func (f collect) Collect(add func(Metric)) { f(add) }

func TestMetricsOfSources(t *testing.T) {
	for name, x := range map[string]struct {
		given   []Metric
		want    string // the samples
		refused int
	}{
		"names together":   {[]Metric{{Name: "a"}, {Name: "b"}, {Name: "a", Labels: []string{"x", "1"}}}, `a{} 0,a{x="1"} 0,b{} 0`, 0},
		"escapes":          {[]Metric{{Name: "a", Help: "1\n2", Labels: []string{"x", "\"\\\n\xff"}}}, `a{x="\"\\\n` + "\uFFFD" + `"} 0`, 0},
		"the same twice":   {[]Metric{{Name: "a", Labels: []string{"x", "1", "y", "2"}}, {Name: "a", Labels: []string{"y", "2", "x", "1"}}}, `a{x="1",y="2"} 0`, 1},
		"bad names":        {[]Metric{{}, {Name: "1a"}, {Name: "a-b"}, {Name: "daimon_a"}, {Name: "a\n"}}, "", 5},
		"bad labels":       {[]Metric{{Name: "a", Labels: []string{"x"}}, {Name: "a", Labels: []string{"__x", ""}}, {Name: "a", Labels: []string{"x", "", "x", ""}}}, "", 3},
		"a value too long": {[]Metric{{Name: "a", Labels: []string{"x", strings.Repeat("v", 1001)}}}, "", 1},
	} {
		own := &Inspector{Sources: []MetricSource{collect(func(add func(Metric)) {
			for _, m := range x.given {
				add(m)
			}
		})}}
		var out strings.Builder
		m := newMetrics()
		own.collect(m, zap.NewNop())
		m.write(&out)
		var samples []string
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "#") {
				samples = append(samples, strings.TrimSuffix(line, "\n"))
			}
		}
		last := len(samples) - 1
		require.Equal(t, fmt.Sprint("daimon_collected_refused{} ", x.refused), samples[last], name)
		require.Equal(t, x.want, strings.Join(samples[:last], ","), name)
	}
}

// What was broken: no figure could be read, also of the schedulers.
func TestASourceThatFailsIsLeftOut(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	x := &Inspector{Sources: []MetricSource{
		collect(func(add func(Metric)) {
			add(Metric{Name: "a"})
			add(Metric{Name: "1a"})
			panic("broken")
		}),
		nil,
		collect(func(add func(Metric)) { add(Metric{Name: "a", Value: 7}) }),
	}}
	var out strings.Builder
	m := newMetrics()
	x.collect(m, zap.New(core))
	m.write(&out)
	require.Contains(t, out.String(), "\na{} 7\n")
	require.Contains(t, out.String(), "\ndaimon_collected_refused{} 2\n")
	require.NotContains(t, out.String(), "a{} 0")
	require.Equal(t, 1, logs.FilterMessage("a source of figures panicked").FilterField(zap.Any("value", "broken")).Len())
}
