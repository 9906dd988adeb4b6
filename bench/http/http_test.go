package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/fake"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/nginx"
	"github.com/daimon-go/daimon/bench/internal/server"
	"github.com/daimon-go/daimon/internal/tier"
)

var (
	builder build.Builder
	loader  string // c/load.c, compiled
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bench-http-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		builder, err = build.Into(dir)
	}
	if err == nil {
		loader, err = load.Build(builder)
	}
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// others are all servers that there are here but Daimon's, whose own tests are elsewhere.
func others(t *testing.T, reactors int) []*server.Process {
	o := Options{Servers: strings.TrimPrefix(all, "daimon,"), Reactors: reactors}
	servers, err := o.columns(io.Discard, builder)
	require.NoError(t, err)
	stop, err := server.StartAll(t.Context(), servers)
	t.Cleanup(stop)
	require.NoError(t, err)
	return servers
}

func TestServersAnswerEveryRequestTheSame(t *testing.T) {
	t.Run("one reactor", func(t *testing.T) { testServers(t, 1) })
	t.Run("two reactors", func(t *testing.T) {
		tier.Need(t, tier.Long, "the same requests once more")
		testServers(t, 2)
	})
}

func testServers(t *testing.T, reactors int) {
	const browser = "../../httpd/testdata/browser.txt"
	for _, s := range others(t, reactors) {
		for name, row := range map[string]struct {
			conns, depth, exchanges int
			request                 string
		}{
			"one at a time":        {100, 1, 1000, ""},
			"sixteen at a time":    {100, 16, 500, ""},
			"a browser's, as many": {20, 16, 100, browser},
			"one connection":       {1, 1, 10, ""},
			"a thousand at a time": {2, 1000, 6, ""},
		} {
			t.Run(s.Name+", "+name, func(t *testing.T) {
				talk, err := Options{Request: row.request}.talk(s, row.depth)
				require.NoError(t, err)
				clients := load.Generator{Program: loader, Conns: row.conns, CPU: -1}
				cost, err := clients.Run(t.Context(), s, talk, row.exchanges)
				require.NoError(t, err)
				require.Positive(t, cost.CPU)
			})
		}
		if !slices.Contains(strings.Split(handlers, ","), s.Name) {
			continue
		}
		for _, what := range []string{download, upload} {
			t.Run(s.Name+", "+what, func(t *testing.T) {
				talk, err := Options{Exchange: what}.talk(s, 1)
				require.NoError(t, err)
				require.Greater(t, len(talk.Say)+len(talk.Hear), 1<<20)
				clients := load.Generator{Program: loader, Conns: 5, CPU: -1}
				_, err = clients.Run(t.Context(), s, talk, 30)
				require.NoError(t, err)
			})
		}
	}
}

func TestNoServerRunsAsRootThatNeedNot(t *testing.T) {
	for _, s := range others(t, 2) {
		if s.Name != "nginx" {
			continue // on a machine without it there is nothing to look at
		}
		var status syscall.Stat_t
		require.NoError(t, syscall.Stat(fmt.Sprintf("/proc/%d", s.PID), &status))
		require.NotZero(t, status.Uid)
		require.Equal(t, 2, s.Workers)
	}
}

// good is a good answer.
const good = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n" +
	"Content-Length: 13\r\n\r\nHello, World!"

func TestLoadFindsTheServerThatAnswersOtherwise(t *testing.T) {
	const other, more, closed = "other bytes than were expected", "more than was expected", "closed a connection"
	for name, row := range map[string]struct{ answer, complaint string }{
		"another second":       {strings.Replace(good, "37", "38", 1), ""},
		"another status":       {strings.Replace(good, "200", "503", 1), other},
		"another field":        {strings.Replace(good, "plain", "plaid", 1), other},
		"another body":         {strings.Replace(good, "World", "Wrrld", 1), other},
		"a longer Date":        {strings.Replace(good, "GMT", "GMTT", 1), more},
		"a byte more":          {good + "!", more},
		"a short one":          {good[:len(good)-1], closed},
		"none":                 {"", closed},
		"the one after before": {good + good, more},
	} {
		for _, depth := range []int{1, 16} {
			t.Run(fmt.Sprint(name, ", ", depth), func(t *testing.T) {
				s := spoiler(t, depth*11-1, row.answer)
				talk, err := Options{}.talk(s, depth)
				require.NoError(t, err)
				_, err = load.Generator{Program: loader, Conns: 1, CPU: -1}.Run(t.Context(), s, talk, 20)
				if row.complaint == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, row.complaint)
				}
			})
		}
	}
}

// spoiler answers requests, on each connection one of them in another way; when that is a short answer, it
// closes.
func spoiler(t *testing.T, nth int, spoilt string) *server.Process {
	return fake.Serve(t, fake.Listen(t), func(c net.Conn) {
		in := bufio.NewReader(c)
		for i := 0; ; i++ {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			said := good
			if i == nth {
				said = spoilt
			}
			if _, err := io.WriteString(c, said); err != nil || len(said) < len(good) {
				return
			}
		}
	})
}

func TestAskLearnsAnAnswer(t *testing.T) {
	a, err := ask(t, spoiler(t, 0, good))
	require.NoError(t, err)
	require.Equal(t, good, string(a.Whole))
	require.True(t, strings.HasPrefix(good[a.Date:], "Sun, 06"))
}

func ask(t *testing.T, s *server.Process) (answer.Answer, error) {
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer c.Close()
	return answer.Ask(c, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), answer.Hello)
}

func TestAskRefuses(t *testing.T) {
	for name, row := range map[string]struct{ answer, complaint string }{
		"another status":         {strings.Replace(good, "200 OK", "404 Not Found", 1), `the status line is "HTTP/1.1 404 Not Found"`},
		"HTTP/1.0":               {strings.Replace(good, "1.1", "1.0", 1), "the status line"},
		"no length":              {strings.Replace(good, "Content-Length: 13", "Transfer-Encoding: chunked", 1), "the Content-Length is not 13"},
		"another length":         {strings.Replace(good, "13", "12", 1), "the Content-Length is not 13"},
		"a length of no number":  {strings.Replace(good, "13", "1e", 1), `parsing "1e"`},
		"another body":           {strings.Replace(good, "World", "world", 1), `the body is "Hello, world!"`},
		"more than a body":       {good + "!", `the body is "Hello, World!!"`},
		"a body cut short":       {good[:len(good)-1], "bytes of an answer: EOF"},
		"a head cut short":       {"HTTP/1.1 200 OK\r\n", "after 17 bytes of an answer: EOF"},
		"no Date":                {strings.Replace(good, "Date", "Data", 1), "no Date"},
		"a Date in another form": {strings.Replace(good, "Sun, 06", "Sunday, 06", 1), "a Date of 32 bytes"},
		"another type":           {strings.Replace(good, "plain", "html", 1), `the Content-Type is "text/html"`},
		"a connection not kept":  {strings.Replace(good, "Date", "connection: close\r\nDate", 1), "the connection is not kept"},
		"a head without an end":  {good[:17] + strings.Repeat("a: b\r\n", 3*8192/6), "a head of more than 8192 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, spoiler(t, 0, row.answer))
			require.ErrorContains(t, err, row.complaint)
		})
	}
}

func TestRequest(t *testing.T) {
	small, err := answer.Request("", "127.0.0.1:80")
	require.NoError(t, err)
	require.Equal(t, "GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", string(small))
	for content, good := range map[string]bool{
		"GET /a HTTP/1.1\r\nHost: b\r\n\r\n":      true,
		"GET /a HTTP/1.1\nHost: b\n\n":            false,
		"GET /a HTTP/1.1\r\nHost: b\r\n":          false,
		"POST / HTTP/1.1\r\nHost: b\r\n\r\n":      false,
		"GET / HTTP/1.1\r\nHost: b\r\n\r\nGET / ": false,
	} {
		file := filepath.Join(t.TempDir(), "request")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		got, err := answer.Request(file, "nowhere")
		require.Equal(t, good, err == nil, content)
		require.Equal(t, content, string(got))
	}
	_, err = answer.Request("no file", "")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// small is a measurement in which fasthttp stands for Daimon.
func small(t *testing.T) Options {
	subject, err := builder.Go("http/fasthttp")
	require.NoError(t, err)
	return Options{Servers: "daimon,fasthttp,control", Server: subject, Pairs: 2, Reactors: 1,
		Conns: 5, Requests: 100, Depths: depths{1, 16, 3}}
}

func TestRunPrintsATableForEachDepth(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(context.Background(), &out, small(t)))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 9+9+8, out.String()) // for a depth of 3 there is no limit
	for i, row := range [][]string{
		strings.Fields("pair daimon fasthttp control daimon/fasthttp control/fasthttp"),
		{"1"}, {"2"}, {"median"}, {"min"}, {"max"}, {"limit", "0.750"},
	} {
		fields := strings.Fields(lines[2+i])
		require.Equal(t, row, fields[:len(row)])
		if len(row) == 1 {
			require.Len(t, fields, 6)
		}
	}
	require.Contains(t, lines[9], "16 at a time, conns 5, requests 112,")
	require.Equal(t, "limit 0.450", strings.Join(strings.Fields(lines[17]), " "))
}

func TestRunJudgesByTheLimitThatIsGiven(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures once more")
	o := small(t)
	o.Pairs, o.Depths, o.Max = 1, depths{1}, 0.001
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "daimon/fasthttp, ")
	o.Max = 1000
	require.NoError(t, run(context.Background(), io.Discard, o))
}

func TestLimits(t *testing.T) {
	of := func(o Options, depth int, names ...string) (all []float64) {
		var servers []*server.Process
		for _, name := range names {
			servers = append(servers, &server.Process{Name: name})
		}
		for _, r := range o.table(servers, depth).Ratios {
			all = append(all, r.Limit)
		}
		return all
	}
	names := []string{"daimon", "fasthttp", "control", "net/http", "nginx"}
	for depth, want := range map[int][]float64{1: {0.75, 0, 0.40, 0}, 16: {0.45, 0, 0, 0.15}, 2: {0, 0, 0, 0}} {
		require.Equal(t, want, of(Options{}, depth, names...))
	}
	require.Equal(t, []float64{0.6, 0, 0, 0}, of(Options{Max: 0.6}, 1, names...))
	names = []string{"nethttp-inline", "nethttp", "net/http", "net/http-control"}
	require.Equal(t, []float64{0.5, 0.75, 0}, of(Options{Conns: 100}, 1, names...))
	require.Equal(t, []float64{0.5, 1.2, 0}, of(Options{Conns: 1}, 1, names...))
	require.Equal(t, []float64{0, 0, 0}, of(Options{Conns: 100}, 16, names...))
	require.Equal(t, []float64{0, 1.1, 0}, of(Options{Conns: 100, Exchange: upload}, 1, names...))
	require.Equal(t, []float64{0, 1.1, 0}, of(Options{Conns: 1, Exchange: download}, 1, names...))
	require.Equal(t, []float64{0, 0, 1.1}, of(Options{Conns: 100, Idle: 1000}, 0, "daimon", "nethttp", "net/http"))
}

func TestAnUnknownExchangeIsAnError(t *testing.T) {
	o := Options{Exchange: "echo"}
	require.ErrorContains(t, run(t.Context(), io.Discard, o), `-exchange is get, download or upload, not "echo"`)
}

func TestServersThatCannotBeHad(t *testing.T) {
	defer func(before []string) { nginx.Places = before }(nginx.Places)
	nginx.Places = []string{"/nowhere/nginx"}
	var out strings.Builder
	o := Options{Servers: "nginx,fasthttp", Reactors: 1}
	servers, err := o.columns(&out, builder)
	require.NoError(t, err)
	require.Len(t, servers, 1)
	require.Equal(t, "nginx is left out: it is not installed (Debian: apt-get install nginx-light)\n", out.String())
	o.Limits = true
	_, err = o.columns(&out, builder)
	require.ErrorIs(t, err, nginx.ErrMissing)
	o.Servers = "apache"
	_, err = o.columns(&out, builder)
	require.ErrorContains(t, err, "apache: -servers takes some of daimon,")
	o.Servers = "control,control"
	_, err = o.columns(&out, builder)
	require.ErrorContains(t, err, "twice")
}

func TestIdleConnectionsTakeMemory(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures once more")
	var out strings.Builder
	o := small(t)
	o.Servers, o.Idle, o.Pairs = "fasthttp,control", 500, 1
	require.NoError(t, run(context.Background(), &out, o))
	lines := strings.Split(out.String(), "\n")
	require.Contains(t, lines[0], "conns 500, one request each")
	var growth float64
	_, err := fmt.Sscanf(strings.TrimSpace(lines[2]), "1 %f", &growth)
	require.NoError(t, err, out.String())
	require.Greater(t, growth, 2048.0) // a goroutine's stack, to begin with
	require.Less(t, growth, 100_000.0)
	o.Idle = 1<<31 - 1
	require.ErrorContains(t, run(context.Background(), &out, o), "ulimit")
}

func TestDepths(t *testing.T) {
	var d depths
	require.NoError(t, d.Set("1,16,1000"))
	require.Equal(t, depths{1, 16, 1000}, d)
	for _, text := range []string{"", "0", "1001", "1,", "x"} {
		require.Error(t, d.Set(text), text)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures once more")
	dir, err := os.MkdirTemp("", "b") // of its own: others may measure meanwhile
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755)) // nginx is nobody's
	t.Setenv("TMPDIR", dir)
	left := func() []string {
		dirs, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		return dirs
	}
	o := small(t)
	o.Servers, o.Pairs, o.Depths = "fasthttp,nginx", 1, depths{1}
	require.NoError(t, run(context.Background(), io.Discard, o))
	require.Empty(t, left())
}
