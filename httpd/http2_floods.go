package httpd

import (
	"time"

	"github.com/daimon-go/daimon/httpd/internal/http2"
)

// flood is a kind of frames, or of events, that costs the server work and the client nearly nothing. A client that has a use for
// them sends a few; one that sends more than most of them loses its connection with ENHANCE_YOUR_CALM (RFC 9113 10.5). Since the
// counts are halved each second, half as many a second may go on for ever. Each kind has a counter.
type flood uint8

const (
	ofResets    flood = iota // requests that the client takes back (Rapid Reset, CVE-2023-44487)
	ofFaults                 // streams that the server has to reset or refuse (MadeYouReset, CVE-2025-8671)
	ofSettings               // CVE-2019-9515
	ofPings                  // CVE-2019-9512, beyond one for each frame of an answer
	ofWindows                // WINDOW_UPDATE, beyond two for each frame of an answer
	ofEmptyData              // CVE-2019-9518
	ofOthers                 // PRIORITY (CVE-2019-9513), GOAWAY, types that are not known, requests after the end
	ofBlocks                 // field blocks that come in too many frames (CVE-2024-27316), or are far too large; inflated heads
	ofSlow                   // heads, windows and answers to PING that do not come in time: see watch
	allFloods
)

// floodsOf has the bound of each, its counter and the reason that the client is told. A browser takes back 100 requests when its
// user goes to another page, and a client of gRPC hundreds in a second, by their deadlines. A request that was
// taken back costs no more than any other, since it counts for Server.MaxStreams. Of everything else a client sends a few:
// nghttp five PRIORITY at first, a browser a PRIORITY_UPDATE for each image that comes into view.
var floodsOf = [allFloods]struct {
	most    uint16
	counter string
	err     *http2.Error
}{
	ofResets:    {1000, "http2_floods_of_resets_total", floodError("too many requests are taken back")},
	ofFaults:    {500, "http2_floods_of_faults_total", floodError("too many streams had to be reset")},
	ofSettings:  {100, "http2_floods_of_settings_total", floodError("too many SETTINGS")},
	ofPings:     {500, "http2_floods_of_pings_total", floodError("too many PING")},
	ofWindows:   {2000, "http2_floods_of_window_updates_total", floodError("too many WINDOW_UPDATE")},
	ofEmptyData: {100, "http2_floods_of_empty_data_total", floodError("too much DATA without content")},
	ofOthers:    {500, "http2_floods_of_others_total", floodError("too many frames that mean nothing")},
	ofBlocks:    {20, "http2_floods_of_blocks_total", floodError("too many heads that repeat a field")},
	ofSlow:      {counter: "http2_slow_total"},
}

func floodError(why string) *http2.Error { return &http2.Error{Code: http2.EnhanceYourCalm, Why: why} }

// floods counts them on a connection.
type floods struct {
	seen  [allFloods]uint16
	since time.Duration
}

// flood notes one more, and returns why the connection ends if that is too much.
func (x *http2Conn) flood(of flood) error {
	f := &x.floods
	if n := (x.cache.s.Now() - f.since) / time.Second; n > 0 {
		f.since += n * time.Second
		for i := range f.seen {
			f.seen[i] >>= n
		}
	}
	if f.seen[of]++; f.seen[of] <= floodsOf[of].most {
		return nil
	}
	x.cache.counts.floods[of]++
	return floodsOf[of].err
}

// useful notes a frame of an answer, for which the client may well send a WINDOW_UPDATE for its stream, one for the connection,
// and, as clients of gRPC do, a PING that measures the way.
func (x *http2Conn) useful() {
	windows, pings := &x.floods.seen[ofWindows], &x.floods.seen[ofPings]
	*windows -= min(*windows, 2)
	*pings -= min(*pings, 1)
}

// dribble is a size of DATA. A smaller frame is not useful if only the window of the client has made it small (CVE-2019-9511).
const dribble = 256
