package httpd

import (
	"time"

	"github.com/daimon-go/daimon/httpd/internal/http2"
)

// flood is a kind of frames, or of events, that costs the server work and the client nearly nothing. A client that has a use for
// them sends a few; one that sends more than mostOf within about a second loses its connection with ENHANCE_YOUR_CALM (RFC 9113
// 10.5). Each has a counter.
type flood uint8

const (
	ofResets    flood = iota // requests that the client takes back (Rapid Reset, CVE-2023-44487)
	ofFaults                 // streams that the server has to reset or refuse (MadeYouReset, CVE-2025-8671)
	ofSettings               // CVE-2019-9515
	ofPings                  // CVE-2019-9512
	ofWindows                // WINDOW_UPDATE, beyond two for each DATA frame
	ofEmptyData              // CVE-2019-9518
	ofOthers                 // PRIORITY (CVE-2019-9513), GOAWAY, types that are not known
	allFloods
)

// floodsOf has the bound of each, its counter and the reason that the client is told.
var floodsOf = [allFloods]struct {
	most    uint16
	counter string
	err     *http2.Error
}{
	ofResets:    {300, "http2_floods_of_resets_total", floodError("too many requests are taken back")},
	ofFaults:    {500, "http2_floods_of_faults_total", floodError("too many streams had to be reset")},
	ofSettings:  {100, "http2_floods_of_settings_total", floodError("too many SETTINGS")},
	ofPings:     {500, "http2_floods_of_pings_total", floodError("too many PING")},
	ofWindows:   {2000, "http2_floods_of_window_updates_total", floodError("too many WINDOW_UPDATE")},
	ofEmptyData: {100, "http2_floods_of_empty_data_total", floodError("too much DATA without content")},
	ofOthers:    {500, "http2_floods_of_others_total", floodError("too many frames that mean nothing")},
}

func floodError(why string) *http2.Error { return &http2.Error{Code: http2.EnhanceYourCalm, Why: why} }

// floods counts them on a connection. The counts are halved each second.
type floods struct {
	seen  [allFloods]uint16
	since time.Duration
}

// flood notes one more, and returns why the connection ends if that is too much.
func (x *http2Conn) flood(of flood) error {
	f := &x.floods
	if now := x.cache.s.Now(); now-f.since >= time.Second {
		f.since = now
		for i := range f.seen {
			f.seen[i] /= 2
		}
	}
	if f.seen[of]++; f.seen[of] <= floodsOf[of].most {
		return nil
	}
	x.cache.counts.floods[of]++
	return floodsOf[of].err
}

// useful notes a DATA frame, for which the client may well send a WINDOW_UPDATE for its stream and one for the connection.
func (x *http2Conn) useful() {
	n := &x.floods.seen[ofWindows]
	*n -= min(*n, 2)
}
