package httpd_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// RFC 9110 9.1, 15.5.5, 15.5.6, 15.6.2: what a Mux answers by itself leaves the connection open, and what comes with it
// unread is thrown away.
func TestResponsesOfAMux(t *testing.T) {
	said := func(w *httpd.Response, r *httpd.Request) act.Action {
		_, _ = fmt.Fprintf(w, "%s %s", r.Pattern(), r.Value("id"))
		return nil
	}
	var site httpd.Mux
	for _, pattern := range []string{"GET /users/{id}", "POST /users/{id}", "BREW /pot", "/any/", "b/only"} {
		site.Handle(pattern, said)
	}
	d := newDriver(t)
	for says, want := range map[string]string{
		"GET /users/7":        "200 GET /users/{id} 7",
		"HEAD /users/7":       "200 ",
		"POST /users/a%2Fb?c": "200 POST /users/{id} a/b",
		"PUT /users/7":        "405 405 Method Not Allowed\n GET, HEAD, POST",
		"get /users/7":        "501 501 Not Implemented\n",
		"BREW /pot":           "200 BREW /pot ",
		"GET /pot":            "405 405 Method Not Allowed\n BREW",
		"OPTIONS *":           "204  BREW, GET, HEAD, OPTIONS, POST",
		"OPTIONS /any/where":  "200 /any/ ",
		"GET /nowhere":        "404 404 Not Found\n",
		"GET /any/../users/7": "404 404 Not Found\n",
		"GET http://b/only":   "200 b/only ",
		"GET /only":           "404 404 Not Found\n",
	} {
		ask := raw(says + " HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello")
		head := asked{head: says[0] == 'H'}
		for _, pieces := range [][]string{{ask, ask}, cut(ask+ask, nil)} {
			c := d.dial(&httpd.Server{Handler: site.Serve}, listener.Limits{}).send(pieces...)
			all := c.check(t, head, head)
			require.Len(t, all, 2, says)
			for _, a := range all {
				got := fmt.Sprintf("%v %s", a, a.body)
				if allow := a.get("Allow"); allow != "" {
					got += " " + allow
				}
				require.Equal(t, want, got, says)
			}
			c.closesInOrder(t)
		}
	}
}
