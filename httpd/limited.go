package httpd

import (
	"strconv"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Limited returns a Handler that answers with 429 (RFC 6585 4) and a Retry-After in seconds when take returns more than 0: how
// long it is until the client may send another request. Otherwise it is h. Take of an admission.Limiter counts by source. take
// is called with the connection of the request, on the thread of its scheduler, before h and in any case before the body is
// read. Limited panics if one of them is nil.
func Limited(take func(c *listener.Conn) (wait time.Duration), h Handler) Handler {
	if take == nil || h == nil {
		panic("httpd: Limited without a function or a Handler")
	}
	return func(w *Response, r *Request) act.Action {
		wait := take(r.Conn())
		if wait <= 0 {
			return h(w, r)
		}
		w.StatusOnly(429)
		w.Add("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
		return nil
	}
}
