package httpd_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/listener"
)

// many says the frames n times in one go. N is the number of a new stream, and O that of an old one.
func (p *attacker) many(n int, frames string) {
	p.dial()
	items := strings.Split(frames, "; ")
	for range n {
		ids := strings.NewReplacer(" N", fmt.Sprintf(" %d", p.next), "=N", fmt.Sprintf("=%d", p.next), " O", fmt.Sprintf(" %d", p.old+1))
		for _, item := range items {
			p.say(p.frame(ids.Replace(item)))
		}
		if strings.Contains(frames, " N") {
			p.next += 2
		} else {
			p.old += 2
		}
	}
	p.flush()
}

// attacker is a player that only counts what its handler is asked.
type attacker struct {
	*player
	next, old uint32
	asked     int
}

func newAttacker(t testing.TB, d *driver) *attacker {
	a := &attacker{player: newPlayer(t), next: 1}
	if d != nil {
		a.d = d
	}
	handle := a.web.Handler
	a.web.Handler = func(w *httpd.Response, r *httpd.Request) act.Action {
		a.asked++
		return handle(w, r)
	}
	return a
}

// counted returns a counter of the scheduler.
func (d *driver) counted(name string) (sum uint64) {
	d.s.Internals().Counts(func(counter string, n uint64) {
		if counter == name {
			sum += n
		}
	})
	return sum
}

// held is the memory that counts for the budget of the scheduler.
func (d *driver) held() int { return budget.Of(d.s).Total() }

// Frames and events that are cheap for a client and not for the server are bounded: one more than most in a second ends the
// connection. Half as many in each second may go on, and what was long ago is forgotten.
func TestHTTP2Floods(t *testing.T) {
	const malformed = "GET N / X=y"
	for name, row := range map[string]struct {
		requests int    // that are handled at the beginning
		before   string // said after them
		each     string
		most     int
		counter  string
	}{
		"Rapid Reset (CVE-2023-44487)":             {0, "", "GET N /wait; RST N CANCEL", 1000, "resets"},
		"Rapid Reset of what has no window":        {0, "SETTINGS 4=0", "GET N /do?write+5; RST N CANCEL", 1000, "resets"},
		"Rapid Reset of what is over":              {0, "", "GET N /; RST N CANCEL", 1000, "resets"},
		"MadeYouReset (CVE-2025-8671)":             {0, "", "GET N /wait; WINDOW N 0", 500, "faults"},
		"MadeYouReset by a window that is too big": {0, "", "GET N /wait; WINDOW N 2147483647", 500, "faults"},
		"MadeYouReset by DATA after the end":       {0, "", "GET N /wait; DATA N 1", 500, "faults"},
		"MadeYouReset by a request that ends":      {0, "", "GET N /wait; GET N /", 500, "faults"},
		"MadeYouReset by more than the length":     {0, "", "POST N /wait content-length=1; DATA N 2", 500, "faults"},
		"MadeYouReset by a dependency":             {0, "", "GET N /wait DEP=N", 500, "faults"},
		"MadeYouReset by malformed requests":       {0, "", malformed, 500, "faults"},
		"MadeYouReset by refusals":                 {128, "", "GET N /", 500, "faults"},
		"MadeYouReset after GOAWAY":                {2100, "stop 0s; pass 2s", "WINDOW O 0", 500, "faults"},
		"requests after GOAWAY":                    {1, "stop 0s; pass 2s", "GET N /", 500, "others"},
		"SETTINGS (CVE-2019-9515)":                 {0, "pass 1s", "SETTINGS", 100, "settings"},
		"SETTINGS that change what they can":       {100, "pass 1s", "SETTINGS 1=0 1=65536 4=0 4=2147483647 5=16777215", 100, "settings"},
		"answers to SETTINGS":                      {0, "pass 1s", "SETTINGS ACK", 100, "settings"},
		"PING (CVE-2019-9512)":                     {0, "", "PING x", 500, "pings"},
		"answers to PING":                          {0, "", "PING x ACK", 500, "pings"},
		"WINDOW_UPDATE":                            {0, "", "WINDOW 0 1", 2000, "window_updates"},
		"WINDOW_UPDATE of what is over":            {0, "GET 1 /; GET 3 /", "WINDOW 1 1", 2000, "window_updates"},
		"a data dribble (CVE-2019-9511)":           {0, "SETTINGS 4=0; GET 1 /do?whole+100000", "WINDOW 1 1", 2000, "window_updates"},
		"a dribble for PING":                       {0, "SETTINGS 4=0; GET 1 /do?whole+100000", "WINDOW 1 255; PING x", 500, "pings"},
		"empty DATA (CVE-2019-9518)":               {0, "POST 1 /wait", "DATA 1 0", 100, "empty_data"},
		"nothing but padding":                      {0, "POST 1 /wait", "DATA 1 0 PAD=9", 100, "empty_data"},
		"empty DATA of what was reset":             {0, "POST 1 / X=y", "DATA 1 0 END", 100, "empty_data"},
		"PRIORITY (CVE-2019-9513)":                 {0, "", "PRIORITY 1 DEP=3", 500, "others"},
		"PRIORITY_UPDATE":                          {1, "", "UPDATE 1 u=0", 500, "others"},
		"GOAWAY":                                   {0, "", "GOAWAY", 500, "others"},
		"unknown frames":                           {0, "", "FRAME 99 0 0 5", 500, "others"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := func() *attacker {
				a := newAttacker(t, nil)
				a.web.MaxStreams = max(128, row.requests)
				a.many(row.requests, "GET N /wait")
				a.play(row.before)
				return a
			}
			a := begin()
			a.many(row.most, row.each)
			require.Equal(t, open, a.client.state)
			require.NotContains(t, a.story(), "ENHANCE_YOUR_CALM")
			require.Less(t, a.d.held(), 1<<20)
			a.many(300, row.each)
			require.Contains(t, a.story(), "ENHANCE_YOUR_CALM")
			require.Equal(t, closed, a.client.state)
			require.LessOrEqual(t, a.asked, row.requests+row.most+2, "nothing is handled after that")
			require.EqualValues(t, 1, a.d.counted("http2_floods_of_"+row.counter+"_total"))
			require.Zero(t, a.d.held())

			a = begin()
			if strings.Contains(name, "dribble") { // each window in a turn of its own
				for i := 0; i < 3*row.most && a.client.state == open; i++ {
					a.many(1, row.each)
				}
				require.Contains(t, a.story(), "ENHANCE_YOUR_CALM")
				return
			}
			for range 3 {
				a.many(row.most/2, row.each)
				a.d.pass(time.Second)
			}
			a.d.pass(12 * time.Second)
			a.many(row.most*3/4, row.each)
			require.NotContains(t, a.story(), "ENHANCE_YOUR_CALM")
		})
	}
}

// What clients do that have no bad intent is no flood.
func TestHTTP2FloodsOfHonestClients(t *testing.T) {
	t.Run("a browser goes to another page", func(t *testing.T) {
		a := newAttacker(t, nil)
		a.many(28, "GET N /wait") // of other pages
		for range 5 {
			a.many(100, "GET N /wait")
			first := a.next - 200
			for i := range uint32(100) {
				a.say(a.frame(fmt.Sprintf("RST %d CANCEL", first+2*i)))
			}
			a.many(100, "GET N /do?write+1,+yield") // in the same piece as the resets
		}
		require.NotContains(t, a.story(), "RST")
		require.Equal(t, 500, strings.Count(a.story(), ` 200 "z"`))
	})
	t.Run("what is on its way to many streams that were reset", func(t *testing.T) {
		a := newAttacker(t, nil)
		a.web.MaxStreams = 400
		a.many(400, "POST N /wait content-length=1; DATA N 2")
		a.play("DATA 1 1")
		require.NotContains(t, a.story(), "GOAWAY")
	})
	for name, each := range map[string]string{
		"requests only":                 "GET N /",
		"a window for each frame":       "GET N /; WINDOW 0 1; WINDOW N 1",
		"a measurement for each answer": "GET N /; PING x",
		"answers that end early":        "POST N /do?status+404; RST N NO_ERROR", // as clients of gRPC do
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttacker(t, nil)
			a.many(1500, each)
			require.Equal(t, 1500, a.asked)
			require.NotContains(t, a.story(), "GOAWAY")
		})
	}
}

// The rest of the attacks, as scenes.
func TestHTTP2Attacks(t *testing.T) {
	times := func(n int, item string) string { return strings.Repeat("; "+item, n) }
	const get = "HEADERS 1 PART END :method=GET :scheme=http :authority=a :path=/"
	const head = "GET 1 / HEX="
	scenes(t, map[string][]scene{
		"CONTINUATION floods (CVE-2024-27316)": {
			{get + times(30, "CONT 1 PART") + "; CONT 1", `1 200 "0"`, "GET /"},
			{get + times(32, "CONT 1 PART"), "GOAWAY 1 ENHANCE_YOUR_CALM!", ""},
		},
		"tables of HPACK": {
			{"HEADERS 1 END HEX=" + strings.Repeat("3fe11f20", 20) + " :method=GET :scheme=http :authority=a :path=/", `1 200 "0"`, "GET /"},
			{head + "203f", "GOAWAY 1 COMPRESSION_ERROR!", ""},
			{"HEADERS 1 END HEX=3fe21f", "GOAWAY 1 COMPRESSION_ERROR!", ""},
		},
		"numbers of streams": {
			{"GET 2147483647 /; GET 1 /", `GOAWAY 2147483647 STREAM_CLOSED | 2147483647 200 "0"!`, "GET /"},
		},
		"a slow head": {
			{"HEADERS 1 PART :method=GET; pass 9s; CONT 1 PART :scheme=http; pass 2s", "GOAWAY 1 ENHANCE_YOUR_CALM!", ""},
			{"HEADERS 1 PART END :method=GET; pass 9s; CONT 1 :scheme=http :authority=a :path=/; BYTES \"\\x00\\x00\\x08\\x06\"; pass 9s; " +
				`BYTES "\x00\x00\x00\x00\x00abcdefgh"`, `PONG abcdefgh | 1 200 "0"`, "GET /"},
		},
		"a window that stands still": {
			{"SETTINGS 4=0; GET 1 /do?whole+9; pass 61s", "ACK | 1 200 RST CANCEL", ""},
		},
	})
}

// bomb is a field block that is small on the wire: one field goes into the table, and each byte after it stands for that.
func bomb(name string, value, references int) string {
	block := append([]byte{0x82, 0x86, 0x84, 0x41, 1, 'a', 0x40}, appendString(appendString(nil, name), strings.Repeat("v", value))...)
	return fmt.Sprintf("HEADERS N END HEX=%x%s", block, strings.Repeat("be", references))
}

// The HTTP/2 Bomb: large heads of one-byte references, with windows that stand still. The answers are 431, of the heads next to
// nothing is kept, and the streams are reset when their time is over. The 21st at once that repeats a large field is a flood.
func TestHTTP2Bomb(t *testing.T) {
	for name, row := range map[string]struct {
		frames string
		fields int // Server.MaxFields
		floods bool
	}{
		"a large field":        {bomb("a", 4000, 10_000), 0, true},
		"a few references":     {bomb("a", 4000, 20), 0, true},
		"small fields":         {bomb("a", 1, 15_000), 0, false},
		"small fields without": {bomb("a", 0, 15_000), 1 << 20, true},
		"crumbs":               {bomb("cookie", 1, 15_000), 0, false},
		"large crumbs":         {bomb("cookie", 4000, 10_000), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttacker(t, nil)
			a.web.MaxFields = row.fields
			a.play("SETTINGS 4=0")
			before := a.d.s.Internals().TurnCount()
			a.many(20, row.frames)
			require.GreaterOrEqual(t, a.d.s.Internals().TurnCount()-before, uint64(10), "64 KiB of fields are read in a turn")
			require.Zero(t, a.asked)
			require.Equal(t, 20, strings.Count(a.story(), " 431 "))
			require.Greater(t, a.d.held(), 0)
			require.Less(t, a.d.held(), 20*4<<10, "a head that is refused is forgotten")
			a.d.pass(70 * time.Second)
			a.listen()
			require.Equal(t, 20, strings.Count(a.story(), "RST CANCEL"))
			require.EqualValues(t, 20, a.d.counted("http2_slow_total"))
			require.Zero(t, a.d.held())
			a.many(21, row.frames)
			require.Equal(t, row.floods, a.client.state == closed)
		})
	}
}

// What a connection keeps between two turns counts for the memory budget of its scheduler, until it is given back.
func TestHTTP2MemoryCounts(t *testing.T) {
	for name, row := range map[string]struct {
		says, ends string
		least      int
	}{
		"bodies that nobody reads":       {"POST 1 /wait; DATA 1 16000; DATA 1 16000; POST 3 /wait; DATA 3 16000", "RST 1 CANCEL; RST 3 CANCEL", 48000},
		"a body that is read later":      {"POST 1 /wait; DATA 1 16000", "eof; reset", 16000},
		"an answer without a window":     {"SETTINGS 4=0; GET 1 /do?write+100000", "RST 1 CANCEL", 100000},
		"that of an action":              {"SETTINGS 4=0; GET 1 /do?yield,+write+60000", "RST 1 CANCEL", 16 << 10},
		"an answer that is taken":        {"SETTINGS 4=0; GET 1 /do?write+30000", "WINDOW 1 30000", 30000},
		"a head":                         {"GET 1 /wait x=" + strings.Repeat("y", 9000), "RST 1 CANCEL", 9000},
		"a part of a field":              {"HEADERS 1 PART END HEX=8286840101610001" + "617f8145" + strings.Repeat("79", 9000), "CONT 1 HEX=" + strings.Repeat("79", 10), 9000},
		"fields of a head that goes on":  {"HEADERS 1 PART END :method=GET :scheme=http :authority=a :path=/ x=" + strings.Repeat("y", 9000), "CONT 1", 9000},
		"a part of a frame":              {`BYTES "\x00\x40\x00\x01\x05\x00\x00\x00\x01` + strings.Repeat("y", 9000) + `"`, "eof", 9000},
		"frames that are not taken":      {"room 0; GET 1 /do?write+200000; WINDOW 0 1000000; WINDOW 1 1000000", "take 500000", 300000},
		"what a tunnel has not received": {"HEADERS 1 :method=CONNECT :protocol=line-echo :scheme=http :authority=a :path=/switch; DATA 1 " + "9000", "RST 1 CANCEL", 9000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttacker(t, nil)
			a.play(row.says)
			require.GreaterOrEqual(t, a.d.held(), row.least)
			require.Less(t, a.d.held(), 3*row.least+64<<10)
			a.play(row.ends)
			require.Zero(t, a.d.held())
		})
	}
}

// Heads that have begun and not ended count for Server.MaxHeads, as those of HTTP/1 do.
func TestHTTP2MaxHeads(t *testing.T) {
	const half, rest = "HEADERS 1 PART END :method=GET :scheme=http", "CONT 1 :authority=a :path=/"
	for name, says := range map[string]string{"half a block": half, "half a frame": `BYTES "\x00\x00\x09\x01"`} {
		d := newDriver(t)
		begin := func() *attacker {
			a := newAttacker(t, d)
			a.web.MaxHeads = 10 * 4 << 10
			a.play(says)
			return a
		}
		var begun []*attacker
		for range 10 {
			begun = append(begun, begin())
			require.Equal(t, open, begun[len(begun)-1].client.state, name)
		}
		require.Equal(t, "GOAWAY 1 ENHANCE_YOUR_CALM!", strings.Replace(begin().story(), " 0 ", " 1 ", 1), name)
		whole := newAttacker(t, d)
		whole.web.MaxHeads = 1
		whole.play("GET 1 /")
		require.Equal(t, `1 200 "0"`, whole.story(), "in one piece")
		begun[0].client.finish(errOurs)
		d.settle()
		if says == half {
			begun[1].play(rest)
			require.Equal(t, `1 200 "0"`, begun[1].story())
			require.Equal(t, open, begin().client.state, "in the place of the one that has ended")
		}
		require.Equal(t, open, begin().client.state, "in the place of the one that was lost")
		require.Equal(t, closed, begin().client.state)
	}
}

// Bodies that nobody reads are as large as their windows. The connections with the largest are closed when there are too many.
func TestHTTP2BodiesAreBoundedByTheBudget(t *testing.T) {
	d := newDriver(t)
	const most = 1 << 20
	budget.Of(d.s).Bound(most)
	honest := newAttacker(t, d)
	honest.many(1, "GET N /wait")
	cut := 0
	for range 5 {
		a := newAttacker(t, d)
		for range 5 {
			a.many(5, "POST N /wait; DATA N 16000; DATA N 16000; DATA N 16000; DATA N 16000")
		}
		require.LessOrEqual(t, d.held(), most+most/4)
		honest.many(1, "GET N /")
		d.pass(2 * time.Second)
		if a.client.state == aborted {
			cut++
		}
	}
	require.Equal(t, 5, cut)
	honest.many(100, "POST N /; DATA N 9 END")
	require.Equal(t, 100, strings.Count(honest.story(), ` 200 "9"`))
}

// swallowing is a handler that reads all that comes, and counts its turns.
func swallowing(turns *int) httpd.Handler {
	return func(_ *httpd.Response, r *httpd.Request) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			*turns++
			in, err := r.Body.Peek()
			r.Body.Discard(len(in))
			return listener.Next(t, err)
		})
	}
}

// DATA in tiny frames costs no more turns, windows and memory than its bytes do.
func TestHTTP2TinyData(t *testing.T) {
	for frame, most := range map[string]int{"DATA 1 1": 20, "DATA 1 1 PAD=255": 600} {
		turns := 0
		a := newAttacker(t, nil)
		a.web.Handler = swallowing(&turns)
		a.play("POST 1 /")
		heard := len(a.client.out)
		for range 50 {
			a.many(200, frame)
			require.LessOrEqual(t, a.d.held(), 4<<10)
		}
		require.Equal(t, open, a.client.state)
		require.LessOrEqual(t, turns, 50*200/20)
		require.LessOrEqual(t, len(a.client.out)-heard, most*26, "bytes of WINDOW_UPDATE")
	}
}

// A client that asks for much and takes nothing is not read from, and is cut off in the end.
func TestHTTP2NothingIsTaken(t *testing.T) {
	for name, frames := range map[string]string{
		"heads":    "HEAD N /",
		"answers":  "GET N /do?write+500",
		"files":    "GET N /do?whole+100000; WINDOW 0 100000; WINDOW N 100000",
		"refusals": "GET N /; GET N / X=y; PING x; SETTINGS",
	} {
		a := newAttacker(t, nil)
		a.play("PING x")
		a.client.room = 0
		for range 100 {
			a.many(80, frames)
			require.Less(t, a.d.held(), 512<<10, name)
		}
		require.Less(t, a.asked, 4000, name)
		if name == "heads" {
			require.Greater(t, a.d.held(), 60<<10, "frames that wait count")
		}
		a.d.pass(80 * time.Second)
		require.Equal(t, aborted, a.client.state, name)
		require.Zero(t, a.d.held())
	}
}

// The window of a body grows while its handler reads everything, up to 1 MiB, and not while the memory budget is reached.
func TestHTTP2WindowsGrowUpToABound(t *testing.T) {
	for most, paused := range map[int]bool{1 << 20: false, http2.DefaultWindow: true} {
		a := newAttacker(t, nil)
		a.web.Handler = swallowing(new(int))
		a.play("POST 1 /")
		if paused {
			var m listener.Meter
			budget.Of(a.d.s).Bound(1 << 20)
			m.Set(a.client.host.conn, 1<<20)
		}
		window, widest := http2.DefaultWindow, 0
		for range 200 {
			heard := len(a.client.out)
			a.many(1, "DATA 1 16000")
			window -= 16000
			for in := a.client.out[heard:]; len(in) > 0; {
				h := http2.ParseHeader(in)
				if h.Type == http2.WindowUpdate && h.Stream == 1 {
					window += int(binary.BigEndian.Uint32(in[http2.HeaderLen:]))
				}
				in = in[http2.HeaderLen+h.Length:]
			}
			widest = max(widest, window)
		}
		require.Equal(t, most, widest)
	}
}
