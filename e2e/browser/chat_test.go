package browser

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// chatServer is examples/chat that runs.
type chatServer struct {
	*exectest.Program
	page string // its URL
	web  string // its address
}

// serveChat starts the chat with its page at the address, and returns when it listens.
func serveChat(t *testing.T, web string, flags ...string) *chatServer {
	t.Helper()
	flags = append(flags, "-addr", "127.0.0.1:0", "-web", web, "-reactors", "2")
	s := &chatServer{Program: exectest.Start(t, exectest.Build{Dir: "../../examples/chat"}.Command(t, flags...))}
	var all [][]string
	eventually(t, "the lines with the addresses", func() bool {
		all = regexp.MustCompile(`listening on (\S+)`).FindAllStringSubmatch(s.Said(), -1)
		return len(all) == 2 || s.Gone()
	})
	require.Len(t, all, 2, s.Said())
	s.Addr, s.web = all[0][1], all[1][1]
	s.page = "http://" + s.web + "/"
	return s
}

// enter fills the form of the page and submits it.
func (p *tab) enter(t *testing.T, name string) {
	t.Helper()
	run[any](t, p, `name => { document.getElementById("name").value = name; document.querySelector("#door button").click() }`, name)
}

// say types a line and submits it, by the keyboard.
func (p *tab) say(t *testing.T, line string) {
	t.Helper()
	run[any](t, p, `line => { const e = document.getElementById("text"); e.focus(); e.value = line }`, line)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent("\r")))
}

func (p *tab) text(t *testing.T, id string) string {
	t.Helper()
	return run[string](t, p, `id => document.getElementById(id).innerText`, id)
}

// shows waits until an element has a text with this in it.
func (p *tab) shows(t *testing.T, id, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q in %s", want, id), func() bool { return strings.Contains(p.text(t, id), want) })
}

// looksLike sets what the page believes of its screen.
func (p *tab) looksLike(t *testing.T, colors string, width, height int64) {
	t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colors}}}
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media)
	require.NoError(t, err)
	size := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1}
	_, err = chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, size)
	require.NoError(t, err)
}

// pictured takes pictures of the page, light and dark, wide and narrow. They stay with -artifacts. Nothing may be wider
// than the screen.
func (p *tab) pictured(t *testing.T, name string) {
	t.Helper()
	grounds := map[string]bool{}
	for _, colors := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{360, 640}, {1280, 800}} {
			p.looksLike(t, colors, size[0], size[1])
			grounds[run[string](t, p, `() => getComputedStyle(document.body).backgroundColor`)] = true
			require.Equal(t, []int64{size[0], size[0]}, run[[]int64](t, p, `() => [innerWidth, document.documentElement.scrollWidth]`))
			png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			require.NoError(t, err)
			file := fmt.Sprintf("%s-%s-%d.png", name, colors, size[0])
			require.NoError(t, os.WriteFile(filepath.Join(t.ArtifactDir(), file), png, 0o644))
		}
	}
	require.Len(t, grounds, 2)
}

// evil is what must stay text: typed, and shown.
var evil = []struct{ typed, shown string }{
	{`<script>window.acted = 1</script>`, ``},
	{`<img src=x onerror="window.acted = 1">`, ``},
	{`"'><svg/onload=window.acted=1>`, ``},
	{`javascript:window.acted=1 &lt;b&gt; &amp; ${window.acted=1} </li></ol>`, ``},
	{"\u202eright to left\u202c, a bell\a and \x1b[31mred", "right to left, a bell and [31mred"},
	{"👩‍👩‍👧 🦊 שלום עליכם", ``},
	{strings.Repeat("verylongword", 60), ``},
	{"H\u0336\u0321\u0322\u0323\u0324\u0325\u0326e\u0336\u0351\u0352\u0353\u0354\u0355 comes", ``},
}

// chatting has two windows in one room.
func chatting(t *testing.T, ada, ben *tab) {
	windows := []*tab{ada, ben}
	s := serveChat(t, "127.0.0.1:0")
	for _, p := range windows {
		p.looksLike(t, "light", 1024, 640)
		require.EqualValues(t, 200, p.visit(t, s.page+"#kitchen"))
	}
	ada.pictured(t, "chat-door")
	ada.enter(t, "Ada")
	ada.shows(t, "state", "Connected as Ada")
	ada.pictured(t, "chat-empty")
	ben.enter(t, " ada ")
	ben.shows(t, "refused", "has that name")
	const name = `"'><img src=x onerror=acted=1>`
	ben.enter(t, "\u202e"+name)
	ada.shows(t, "log", name+" has come")
	ada.shows(t, "names", name)
	ada.shows(t, "people", "2 here")
	require.Equal(t, "#kitchen", run[string](t, ben, `() => location.hash`))

	ada.say(t, "hello, is anybody here?")
	ben.shows(t, "log", "hello, is anybody here?")
	ada.shows(t, "log", "hello, is anybody here?")
	ben.say(t, "I am. I am writing a somewhat longer message, so that one can see where the lines break and how wide a message becomes.")
	ada.shows(t, "log", "how wide a message becomes.")
	ada.say(t, "It is nice to see you here.")
	ben.shows(t, "log", "It is nice to see you here.")
	ada.pictured(t, "chat-talk")

	// What one types never acts in the window of another. They type by turns, so that neither is too fast.
	for i, x := range evil {
		if x.shown == "" {
			x.shown = x.typed
		}
		windows[i%2].say(t, x.typed)
		windows[1-i%2].shows(t, "log", x.shown)
	}
	for _, p := range windows {
		require.Equal(t, []int{0, 0}, run[[]int](t, p, `() => [
			document.querySelectorAll("#log :is(script, img, svg, b, a), #names :is(script, img, svg, b, a)").length, window.acted ?? 0]`))
		p.staysAt(t, strings.TrimSuffix(s.page, "/"))
	}
	ben.pictured(t, "chat-evil")

	// A line that comes again is shown once.
	run[any](t, ada, `() => {
		const again = new WebSocket("ws://" + location.host + "/ws");
		again.onopen = () => {
			again.send(JSON.stringify({type: "join", room: "kitchen", name: "Ada", key: sessionStorage.getItem("key")}));
			for (const id of ["once", "once", "last"]) {
				again.send(JSON.stringify({type: "say", text: "said " + id, id}));
			}
		};
	}`)
	for _, p := range windows {
		p.shows(t, "log", "said last")
		require.Equal(t, 1, strings.Count(p.text(t, "log"), "said once"))
	}

	// Too fast, and too long.
	run[any](t, ben, `() => {
		for (let n = 0; n < 15; n++) {
			document.getElementById("text").value = "quickly " + n;
			document.getElementById("say").requestSubmit();
		}
	}`)
	ben.shows(t, "notice", "too fast")
	require.NotEmpty(t, run[string](t, ben, `() => document.getElementById("text").value`), "what was not said is still there")
	ada.say(t, strings.Repeat("é", 900))
	ada.shows(t, "notice", "too long")

	// The server is killed, and comes back at the same address.
	s.Signal(t, syscall.SIGKILL)
	ada.shows(t, "state", "Disconnected")
	ben.shows(t, "state", "Disconnected")
	ada.pictured(t, "chat-lost")
	s = serveChat(t, s.web)
	for _, p := range windows {
		p.shows(t, "state", "Connected as")
		p.shows(t, "people", "2 here")
	}
	ada.say(t, "Here we are again.")
	ben.shows(t, "log", "Here we are again.")

	// All are told of the end.
	s.Signal(t, syscall.SIGTERM)
	for _, p := range windows {
		p.shows(t, "state", "Disconnected")
		p.shows(t, "log", "The chat ends.")
	}
	require.Zero(t, s.Exit(t))
	require.Contains(t, s.Said(), "ended in order")
	require.NotContains(t, s.Said(), "failed")
}

// together has three windows, each at a process of its own. The processes share a database, and are killed one after the other,
// while all three talk. No window misses a line, or shows one twice.
func together(t *testing.T, windows ...*tab) {
	tier.Tool(t, "initdb")
	postgres, err := pgserver.Shared()
	require.NoError(t, err)
	defer func() { require.NoError(t, postgres.Close()) }()
	database, err := postgres.Create("chat_" + strings.ToLower(rand.Text()))
	require.NoError(t, err)
	all := make([]string, len(windows)) // the addresses
	for i := range all {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		all[i] = l.Addr().String()
		require.NoError(t, l.Close())
	}
	serve := func(i int) *chatServer {
		return serveChat(t, all[i], "-database", database, "-peers", strings.Join(slices.Delete(slices.Clone(all), i, i+1), ","))
	}
	servers := make([]*chatServer, len(all))
	for i, p := range windows {
		servers[i] = serve(i)
		p.looksLike(t, "light", 1024, 640)
		require.EqualValues(t, 200, p.visit(t, servers[i].page))
		p.enter(t, fmt.Sprint("visitor ", i))
	}
	for _, p := range windows {
		p.shows(t, "people", "3 here")
	}
	var want []string
	say := func(by int, line string) {
		windows[by].say(t, line)
		want = append(want, line)
	}
	said := func(p *tab) []string {
		return run[[]string](t, p, `() => [...document.querySelectorAll("#log .text")].map(e => e.textContent)`)
	}
	for i, s := range servers {
		for by := range windows {
			say(by, fmt.Sprintf("%d before the end of %d", by, i))
		}
		s.Signal(t, syscall.SIGKILL)
		for by := range windows {
			say(by, fmt.Sprintf("%d after the end of %d", by, i))
		}
		for _, p := range windows {
			eventually(t, "all lines", func() bool { return len(said(p)) >= len(want) })
			p.shows(t, "state", "Connected as")
		}
		servers[i] = serve(i)
	}
	for _, p := range windows {
		require.Equal(t, said(windows[0]), said(p), "the order")
		require.ElementsMatch(t, want, said(p))
		require.NotContains(t, p.text(t, "log"), "missing")
		p.shows(t, "people", "3 here")
	}
	windows[0].pictured(t, "chat-together")
	for _, s := range servers {
		s.Signal(t, syscall.SIGTERM)
		require.Zero(t, s.Exit(t))
	}
}
