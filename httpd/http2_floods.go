package httpd

import "github.com/daimon-go/daimon/httpd/internal/http2"

// The counters of connections that are lost for a flood, and for heads, windows and answers to PING that do not come in time: see
// watch.
var floodCounters = [ofSlow + 1]string{
	http2.OfResets:    "http2_floods_of_resets_total",
	http2.OfFaults:    "http2_floods_of_faults_total",
	http2.OfSettings:  "http2_floods_of_settings_total",
	http2.OfPings:     "http2_floods_of_pings_total",
	http2.OfWindows:   "http2_floods_of_window_updates_total",
	http2.OfEmptyData: "http2_floods_of_empty_data_total",
	http2.OfOthers:    "http2_floods_of_others_total",
	http2.OfBlocks:    "http2_floods_of_blocks_total",
	ofSlow:            "http2_slow_total",
}

const ofSlow = http2.AllFloods

// flood notes one more, and returns why the connection ends if that is too much.
func (x *http2Conn) flood(of http2.Flood) error {
	if bad := x.floods.Note(of, x.cache.s.Now()); bad != nil {
		x.cache.counts.floods[of]++
		return bad
	}
	return nil
}
