package httpd

import "github.com/daimon-go/daimon/act"

// Healthy is a handler that answers "ok" with status 200, as long as the scheduler of the connection gives turns. The usual
// path is /healthz.
func Healthy(w *Response, _ *Request) act.Action {
	say(w, 200, "ok\n")
	return nil
}

// Ready is a handler for load balancers: it answers "ok" with status 200, and one line with status 503 from when a shutdown
// is announced. See Announce of shutdown.Policy. The usual path is /readyz.
//
// If the shutdown request says that another process serves the same address, by a method Replaced() bool like that of package
// upgrade, the status stays 200.
func Ready(w *Response, r *Request) act.Action {
	order := r.Conn().Scheduler().Group().Order()
	other, ok := order.(interface{ Replaced() bool })
	if order != nil && !(ok && other.Replaced()) {
		say(w, 503, "the server is about to end\n")
	} else {
		say(w, 200, "ok\n")
	}
	return nil
}

func say(w *Response, status int, text string) {
	w.SetStatus(status)
	w.Add("Content-Type", "text/plain; charset=utf-8")
	w.Add("Cache-Control", "no-store")
	_, _ = w.WriteString(text) // an error stays for the next call
}
