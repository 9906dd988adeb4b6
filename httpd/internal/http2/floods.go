package http2

import "time"

// Flood is a kind of frames, or of events, that costs an endpoint work and its peer nearly nothing. A peer that has a use for
// them sends a few; one that sends more than most of them loses its connection with ENHANCE_YOUR_CALM (RFC 9113 10.5). Since the
// counts are halved each second, half as many a second may go on for ever.
type Flood uint8

// The kinds of floods.
const (
	OfResets    Flood = iota // requests that the client takes back (Rapid Reset, CVE-2023-44487)
	OfFaults                 // streams that have to be reset or refused (MadeYouReset, CVE-2025-8671)
	OfSettings               // CVE-2019-9515
	OfPings                  // CVE-2019-9512, beyond one for each frame of a message
	OfWindows                // WINDOW_UPDATE, beyond two for each frame of a message
	OfEmptyData              // CVE-2019-9518
	OfOthers                 // PRIORITY (CVE-2019-9513), GOAWAY, types that are not known, frames after the end
	OfBlocks                 // field blocks that come in too many frames (CVE-2024-27316), or are far too large; inflated heads
	AllFloods                // how many there are
)

// mostOf has the bound of each, and the reason that the peer is told. A browser takes back 100 requests when its
// user goes to another page, and a client of gRPC hundreds in a second, by their deadlines. A request that was
// taken back costs no more than any other, since it counts for the bound of streams. Of everything else a peer sends a few:
// nghttp five PRIORITY at first, a browser a PRIORITY_UPDATE for each image that comes into view.
var mostOf = [AllFloods]struct {
	most uint16
	err  *Error
}{
	OfResets:    {1000, floodError("too many requests are taken back")},
	OfFaults:    {500, floodError("too many streams had to be reset")},
	OfSettings:  {100, floodError("too many SETTINGS")},
	OfPings:     {500, floodError("too many PING")},
	OfWindows:   {2000, floodError("too many WINDOW_UPDATE")},
	OfEmptyData: {100, floodError("too much DATA without content")},
	OfOthers:    {500, floodError("too many frames that mean nothing")},
	OfBlocks:    {20, floodError("too many heads that repeat a field")},
}

func floodError(why string) *Error { return &Error{Code: EnhanceYourCalm, Why: why} }

// Floods counts them on a connection.
type Floods struct {
	seen  [AllFloods]uint16
	since time.Duration
}

// Note notes one more, and returns why the connection ends if that is too much.
func (f *Floods) Note(of Flood, now time.Duration) *Error {
	if n := (now - f.since) / time.Second; n > 0 {
		f.since += n * time.Second
		for i := range f.seen {
			f.seen[i] >>= n
		}
	}
	if f.seen[of]++; f.seen[of] <= mostOf[of].most {
		return nil
	}
	return mostOf[of].err
}

// Useful notes a frame of a message that was sent, for which the peer may well send a WINDOW_UPDATE for its stream, one for the
// connection, and, as gRPC does, a PING that measures the way.
func (f *Floods) Useful() {
	windows, pings := &f.seen[OfWindows], &f.seen[OfPings]
	*windows -= min(*windows, 2)
	*pings -= min(*pings, 1)
}

// Dribble is a size of DATA. A smaller frame is not useful if only the window of the peer has made it small (CVE-2019-9511).
const Dribble = 256
