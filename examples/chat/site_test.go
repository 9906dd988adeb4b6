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
	return w
}

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
	n, err := w.next()
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
	require.Equal(t, news{Type: "came", Name: "Ada", Here: 1}, ada.hears())
	ben := c.client("Ben")
	servertest.Expect(t, ben, "Your name?\n* Ben has come to lobby\n")
	require.Equal(t, news{Type: "came", Name: "Ben", Here: 2}, ada.hears())

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
	ada.hearsOf("came")
	require.Equal(t, news{Type: "came", Name: "Ben", Here: 2}, ada.hears())
	servertest.Reset(t, ben)
	require.Equal(t, news{Type: "left", Name: "Ben", Here: 1}, ada.hears())

	cleo, outsider := c.client("Cleo"), c.window() // the outsider is in no room
	servertest.Expect(t, cleo, "Your name?\n* Cleo has come to lobby\n")
	c.Group.Shutdown(servertest.Drain)
	servertest.Expect(t, cleo, over.text)
	hearEnd(t, cleo)
	for _, w := range []*window{ada, outsider} {
		_, err := w.next()
		for err == nil {
			_, err = w.next()
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
	ada.hearsOf("came")
	for room, name := range map[string]string{"kitchen": "Ada", "cellar": "ADA", "attic": " a\u200dda \x00"} {
		other := c.window()
		other.wants(wish{Type: "join", Name: name, Room: "lobby"})
		require.Equal(t, "taken", other.hears().Type)
		other.wants(wish{Type: "join", Name: name, Room: room})
		require.Equal(t, "welcome", other.hears().Type, "there it is free")
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
	c.empty()
	c.end()
}

func TestWhatAPageMaySend(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	const tooLong = "That line is too long."
	ada := c.window()
	for text, want := range map[string]event{
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
	ada.hearsOf("came")
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
	_, err := ada.next()
	require.Equal(t, closed(1009), err)
	require.NoError(t, ada.Close())
	c.empty()
	c.end()
}

// A member that sends too much at once is told so, on a page and on a terminal. The burst is heard.
func TestTooFast(t *testing.T) {
	c := startPaced(t, act.Config{Schedulers: 2}, time.Hour)
	ada := c.window()
	ada.wants(wish{Type: "join", Name: "Ada"})
	ada.hearsOf("came")
	for n := range burst {
		ada.says(fmt.Sprint(n))
	}
	said := 0
	for range burst {
		if n := ada.hears(); n.Type == "refused" {
			require.Equal(t, "You type too fast. Wait a moment, please.", n.Text)
		} else {
			require.Equal(t, news{Type: "said", Name: "Ada", Text: fmt.Sprint(said)}, n)
			said++
		}
	}
	require.Equal(t, burst-1, said)
	ben := c.client("Ben")
	servertest.Send(t, ben, strings.Repeat("x\n", burst))
	servertest.Expect(t, ben, "Your name?\n* Ben has come to lobby\n"+tooFast.text)
	require.NoError(t, ada.Close())
	require.NoError(t, ben.Close())
	c.empty()
	c.end()
}

// What one comes or leaves costs does not grow with the crowd: all hear their number, once in a while.
func TestACrowd(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	ada := c.enter("Ada", "lobby")
	var all []*window
	for i := range crowd + 4 {
		all = append(all, c.enter(fmt.Sprint("m", i), "lobby"))
	}
	came := 0
	for n := ada.hears(); ; n = ada.hears() {
		if n.Type == "came" {
			came++
			continue
		}
		require.Equal(t, "here", n.Type)
		require.Empty(t, n.Names)
		if n.Here == crowd+5 {
			break
		}
	}
	require.Equal(t, crowd, came, "and no more")
	last := all[len(all)-1]
	last.wants(wish{Type: "who"})
	n := last.hearsOf("names")
	require.Equal(t, crowd+5, n.Here)
	require.Len(t, n.Names, crowd)
	ben := c.client("Ben")
	servertest.Send(t, ben, "/who\n")
	hearBehind(t, ben, " and 6 more\n")
	require.NoError(t, ben.Close())
	for _, w := range all[:6] {
		require.NoError(t, w.Close())
	}
	for n := ada.hears(); ; n = ada.hears() { // when the list is complete again, all get it
		require.Equal(t, "here", n.Type)
		if n.Here <= crowd {
			require.Len(t, n.Names, n.Here)
			break
		}
	}
	for _, w := range append(all[6:], ada) {
		require.NoError(t, w.Close())
	}
	c.empty()
	c.end()
}

func TestSite(t *testing.T) {
	c := start(t, act.Config{Schedulers: 1})
	_, err := visit(servertest.Dial(t, c.web.Addr()), "http://elsewhere")
	require.ErrorContains(t, err, "HTTP/1.1 403 ")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, kind := range map[string]string{"/": "text/html", "/chat.css": "text/css", "/chat.js": "text/javascript", "/icon.svg": "image/svg+xml"} {
		r, err := client.Get("http://" + c.web.Addr().String() + path)
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, 200, r.StatusCode, path)
		require.Contains(t, r.Header.Get("Content-Type"), kind)
		require.Equal(t, policy, r.Header.Get("Content-Security-Policy"))
		require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
		require.NotEmpty(t, body)
	}
	c.Group.Shutdown(servertest.Drain)
	require.NoError(t, c.End())
}
