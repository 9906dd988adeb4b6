package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/sim/framing"
	"github.com/daimon-go/daimon/topic"
)

// window is a page in a browser.
type window struct {
	t *testing.T
	*visitor
}

func (c *chat) window() *window {
	c.T.Helper()
	v, err := visit(servertest.Dial(c.T, c.web.Addr()), "http://localhost")
	require.NoError(c.T, err)
	return &window{c.T.(*testing.T), v}
}

// enter returns a window that has entered a room.
func (c *chat) enter(name, room string) *window {
	c.T.Helper()
	w := c.window()
	w.wants(wish{Type: "join", Room: room, Name: name})
	require.Equal(c.T, "welcome", w.hears().Type)
	w.hearsOf("ready")
	return w
}

// hears returns what comes next, without what each run makes anew.

func (w *window) wants(x wish) {
	w.t.Helper()
	require.NoError(w.t, w.wish(x))
}

func (w *window) says(text string) {
	w.t.Helper()
	w.wants(wish{Type: "say", Text: text})
}

func (w *window) hears() news {
	w.t.Helper()
	n := w.next()
	n.By, n.At, n.Epoch, n.Offset = "", 0, "", 0
	return n
}

func (w *window) next() news {
	w.t.Helper()
	n, err := w.visitor.next()
	require.NoError(w.t, err)
	return n
}

// hearsOf reads up to and with news of a type.
func (w *window) hearsOf(kind string) news {
	w.t.Helper()
	for {
		if n := w.hears(); n.Type == kind {
			return n
		}
	}
}

// At the end all are told, on terminals and on pages, which are closed with code 1001.
func TestAPageAndATerminalInOneRoom(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	ada := c.window()
	ada.wants(wish{Type: "join", Name: "Ada", Room: "lobby"})
	require.Equal(t, news{Type: "welcome", Room: "lobby", Name: "Ada", Here: 1, Names: []string{"Ada"}}, ada.hears())
	require.Equal(t, news{Type: "follows", Complete: true}, ada.hears())
	require.Equal(t, news{Type: "ready"}, ada.hears())
	ben := c.client("Ben")
	servertest.Expect(t, ben, "Your name?\n* Ben has come to lobby\n")
	require.Equal(t, news{Type: "came", Name: "Ben"}, ada.hears())

	ada.says(" hello ")
	servertest.Expect(t, ben, "Ada: hello\n")
	require.Equal(t, news{Type: "said", Name: "Ada", Text: "hello"}, ada.hears(), "its own line, when it was said")
	servertest.Send(t, ben, "<b>hi</b>\n")
	require.Equal(t, news{Type: "said", Name: "Ben", Text: "<b>hi</b>"}, ada.hears())
	ada.wants(wish{Type: "who"})
	require.Equal(t, news{Type: "names", Here: 2, Names: []string{"Ada", "Ben"}}, ada.hears())

	ada.wants(wish{Type: "join", Room: "kitchen"}) // with the same name
	require.Equal(t, news{Type: "welcome", Room: "kitchen", Name: "Ada", Here: 1, Names: []string{"Ada"}}, ada.hears())
	servertest.Expect(t, ben, "* Ada has left lobby\n")
	servertest.Send(t, ben, "/join kitchen\n")
	servertest.Expect(t, ben, "* Ben has come to kitchen\n")
	ada.hearsOf("ready")
	require.Equal(t, news{Type: "came", Name: "Ben"}, ada.hears())
	servertest.Reset(t, ben)
	require.Equal(t, news{Type: "left", Name: "Ben"}, ada.hears())

	cleo, outsider := c.client("Cleo"), c.window() // the outsider is in no room
	servertest.Expect(t, cleo, "Your name?\n* Cleo has come to lobby\n")
	c.Group.Shutdown(servertest.Drain)
	servertest.Expect(t, cleo, over.text)
	hearEnd(t, cleo)
	for _, w := range []*window{ada, outsider} {
		_, err := w.visitor.next()
		for err == nil {
			_, err = w.visitor.next()
		}
		require.Equal(t, closed(1001), err)
		hearEnd(t, w.Conn)
	}
	c.end()
}

// A name is taken in its room as long as its member is there, however it is written.
func TestNamesThatAreTaken(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	ada := c.enter("Ada", "lobby")
	for room, name := range map[string]string{"kitchen": "Ada", "cellar": "ADA", "attic": " a\u200dda \x00"} {
		other := c.window()
		other.wants(wish{Type: "join", Name: name, Room: "lobby"})
		require.Equal(t, "taken", other.hears().Type)
		other.wants(wish{Type: "join", Name: name, Room: room})
		require.Equal(t, "welcome", other.hears().Type, "there it is free")
		other.wants(wish{Type: "join", Room: "lobby"})
		require.Equal(t, "taken", other.hearsOf("taken").Type)
		require.NoError(t, other.Close())
	}
	ben := c.client("ada")
	servertest.Expect(t, ben, "Your name?\n* ada is taken in lobby. Your name?\n")
	servertest.Send(t, ben, "Ben\n")
	servertest.Expect(t, ben, "* Ben has come to lobby\n")
	servertest.Send(t, ben, "/join lobby\n") // his name is not in his way
	servertest.Expect(t, ben, "* Ben has come to lobby\n")
	require.NoError(t, ada.Close())
	servertest.Expect(t, ben, "* Ada has left lobby\n")
	ada = c.enter("Ada", "lobby")
	servertest.Expect(t, ben, "* Ada has come to lobby\n")
	require.NoError(t, ada.Close())
	require.NoError(t, ben.Close())
	c.end()
}

func TestWhatAPageMaySend(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	ada := c.window()
	for text, want := range map[string]*event{
		`{"type":"say","text":"hello"}`:                      whoAreYou,
		`{"type":"who"}`:                                     whoAreYou,
		`{"type":"join","room":"lobby"}`:                     unnamed,
		`{"type":"join","name":"\u200d\u202e \u0000\ufeff"}`: unnamed,
	} {
		require.NoError(t, ada.web.Write(framing.Text, []byte(text)))
		require.Equal(t, want, tell(want.text, ada.hears()))
	}
	ada.wants(wish{Type: "join", Name: "  Ada\t\u202eof\n  the \x1b" + strings.Repeat("é", 100), Room: strings.Repeat("r", 100)})
	n := ada.hears()
	require.Equal(t, "Adaof the "+strings.Repeat("é", 11), n.Name)
	require.Equal(t, strings.Repeat("r", maxName), n.Room)
	ada.hearsOf("ready")
	for _, row := range []struct {
		name   string
		opcode int
		text   string
		answer news
	}{
		{"no JSON", 1, `hello`, news{Type: "refused", Text: "That was not understood."}},
		{"more than JSON", 1, `{"type":"who"} {}`, news{Type: "refused", Text: "That was not understood."}},
		{"an unknown type", 1, `{"type":"shout","text":"hello"}`, news{Type: "refused", Text: "That was not understood."}},
		{"very deep", 1, `{"type":` + strings.Repeat("[", 8000), news{Type: "refused", Text: "That was not understood."}},
		{"binary", 2, `{"type":"say","text":"hello"}`, news{Type: "refused", Text: "That was not understood."}},
		{"a line that is too long", 1, `{"type":"say","text":"` + strings.Repeat("x", maxLine) + `"}`, news{Type: "refused", Text: tooLong}},
		{"the longest line", 1, `{"type":"say","text":"` + strings.Repeat("x", maxLine-1) + `"}`,
			news{Type: "said", Name: n.Name, Text: strings.Repeat("x", maxLine-1)}},
		{"characters that control", 1, `{"type":"say","text":"a\u202eb\u0000c\nd\u001be\u2066f\ud800"}`,
			news{Type: "said", Name: n.Name, Text: "abcdef\ufffd"}},
	} {
		require.NoError(t, ada.web.Write(row.opcode, []byte(row.text)), row.name)
		require.Equal(t, row.answer, ada.hears(), row.name)
	}
	ada.says(" \t\u202e ") // nothing is left of it
	require.NoError(t, ada.web.Write(framing.Text, make([]byte, maxMessage+1)))
	_, err := ada.visitor.next()
	require.Equal(t, closed(1009), err)
	require.NoError(t, ada.Close())
	c.end()
}

// A member that sends too much at once is told so, on a page and on a terminal. The burst is heard.
func TestTooFast(t *testing.T) {
	c := startPaced(t, act.Config{Schedulers: 2}, time.Hour)
	ada := c.enter("Ada", "lobby")
	for n := range burst {
		ada.wants(wish{Type: "say", Text: fmt.Sprint(n), ID: fmt.Sprint("line", n)})
	}
	said := 0
	for range burst {
		if n := ada.hears(); n.Type == "refused" {
			require.Equal(t, news{Type: "refused", Text: tooFast, ID: "line9"}, n)
		} else {
			require.Equal(t, news{Type: "said", Name: "Ada", Text: fmt.Sprint(said), ID: fmt.Sprint("line", said)}, n)
			said++
		}
	}
	require.Equal(t, burst-1, said)
	ben := c.client("Ben")
	servertest.Send(t, ben, strings.Repeat("x\n", burst))
	servertest.Expect(t, ben, "Your name?\n* Ben has come to lobby\n"+refuse(tooFast).text)
	require.NoError(t, ada.Close())
	require.NoError(t, ben.Close())
	c.end()
}

// What one comes or leaves costs does not grow with the crowd: from then on who asks hears who is there.
func TestACrowd(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	all := []*window{c.enter("Ada", "lobby")}
	for i := range crowd + 4 {
		all = append(all, c.enter(fmt.Sprint("m", i), "lobby"))
	}
	for range crowd - 1 {
		require.Equal(t, "came", all[0].hears().Type)
	}
	require.Equal(t, news{Type: "names", Here: crowd + 1}, all[0].hears())
	for _, w := range []*window{all[0], all[crowd+4]} {
		w.wants(wish{Type: "who"})
		n := w.hears()
		require.Len(t, n.Names, crowd)
		require.GreaterOrEqual(t, n.Here, crowd+1, "up to a second ago")
	}
	ben := c.client("Ben")
	servertest.Send(t, ben, "/who\n")
	hearBehind(t, ben, " more\n")
	require.NoError(t, ben.Close())
	for _, w := range all {
		require.NoError(t, w.Close())
	}
	c.end()
}

// A page that comes again with its key is the same member, even while its old connection is still there. It gets what it has
// missed; another page gets all that is kept.
func TestAPageComesAgain(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	join := wish{Type: "join", Name: "Ada", Room: "lobby", Key: "secret"}
	old := c.window()
	old.wants(join)
	id := old.next().By
	old.hearsOf("ready")
	ben := c.client("Ben")
	servertest.Send(t, ben, "one\ntwo\nthree\n")
	old.hearsOf("said")
	two := old.next()
	require.Equal(t, "two", two.Text)

	for _, row := range []struct {
		name     string
		epoch    string
		offset   uint64
		complete bool
		missed   []string
	}{
		{"where it was", two.Epoch, two.Offset, true, []string{"three"}},
		{"nothing missed", two.Epoch, 3, true, nil},
		{"all that is kept", topic.Earliest.Epoch, 0, true, []string{"one", "two", "three"}},
		{"the history was lost", "another", 2, false, []string{"one", "two", "three"}},
		{"nowhere", "", 0, true, nil},
	} {
		again := c.window()
		join.Epoch, join.Offset = row.epoch, row.offset
		again.wants(join)
		welcome := again.next()
		require.Equal(t, id, welcome.By, row.name)
		require.Equal(t, []string{"Ada", "Ben"}, welcome.Names, row.name)
		require.Equal(t, news{Type: "follows", Complete: row.complete}, again.hears(), row.name)
		var missed []string
		for n := again.hears(); n.Type != "ready"; n = again.hears() {
			missed = append(missed, n.Text)
		}
		require.Equal(t, row.missed, missed, row.name)
		require.NoError(t, again.Close())
	}
	require.NoError(t, old.Close())
	require.NoError(t, ben.Close())
	c.end()
}

func TestSite(t *testing.T) {
	c := start(t, act.Config{Schedulers: 1}, "peer.example:80")
	for _, origin := range []string{"http://elsewhere", "null"} {
		_, err := visit(servertest.Dial(t, c.web.Addr()), origin)
		require.ErrorContains(t, err, "HTTP/1.1 403 ")
	}
	ada := c.enter("Ada", "lobby") // from localhost
	require.NoError(t, ada.Close())
	peer, err := visit(servertest.Dial(t, c.web.Addr()), "https://peer.example:80")
	require.NoError(t, err)
	require.NoError(t, peer.Close())
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, kind := range map[string]string{"/": "text/html", "/chat.css": "text/css", "/chat.js": "text/javascript", "/icon.svg": "image/svg+xml"} {
		r, err := client.Get("http://" + c.web.Addr().String() + path)
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, 200, r.StatusCode, path)
		require.Contains(t, r.Header.Get("Content-Type"), kind)
		require.Contains(t, r.Header.Get("Content-Security-Policy"), "connect-src 'self' ws://peer.example:80 wss://peer.example:80;")
		require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
		require.NotEmpty(t, body)
	}
	c.Group.Shutdown(servertest.Drain)
	require.NoError(t, c.End())
}
