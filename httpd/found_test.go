package httpd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// What follows was found by the simulation: sim.TestHTTP.

func TestABodyThatFailsBehindTheHeadOfTheAnswerWasAnsweredAgainByTheHandler(t *testing.T) {
	asked := 0
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		asked++
		return echo(w, r)
	}}
	d := newDesk(t)
	c := d.dial(web, listener.Limits{}).say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
	require.Contains(t, c.heard(), "hello")
	d.pass(time.Minute)
	require.Equal(t, aborted, c.state)
	require.Equal(t, act.Done, c.verdict)
	require.Equal(t, 1, asked)
}

func TestAClientThatReadsTooSlowlyBehindAnAnswerKeptTheSchedulerBusyForEver(t *testing.T) {
	web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		w.Whole(make([]byte, 1<<20))
		return nil
	}}
	d := newDesk(t)
	c := d.dial(web, listener.Limits{})
	c.room = 0
	c.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	d.pass(time.Hour)
	require.Equal(t, aborted, c.state)
	require.Equal(t, act.Done, c.verdict)
}

func TestAnEmptyBodyThatWasReadToItsEndHadTheConnectionClosedIfItWasAnnouncedByExpect(t *testing.T) {
	d := newDesk(t)
	c := d.dial(&httpd.Server{Handler: echo}, listener.Limits{})
	c.say("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n0\r\n\r\n")
	require.NotContains(t, c.heard(), "close")
}

func TestTrailersThatAreLargerThanTheLimitOfTheConnectionWereAFailureOfTheHandler(t *testing.T) {
	d := newDesk(t)
	c := d.dial(&httpd.Server{Handler: echo}, listener.Limits{Read: 1000})
	c.say("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + strings.Repeat("y", 1000) + "\r\n\r\n")
	require.Contains(t, c.heard(), "HTTP/1.1 431 ")
	require.Equal(t, act.Done, c.verdict)
}

func TestARefusedRequestBehindOneWithALongerTargetWasAPanic(t *testing.T) {
	d := newDesk(t)
	c := d.dial(&httpd.Server{Handler: hello}, listener.Limits{})
	c.say("GET /" + strings.Repeat("x", 100) + " HTTP/1.1\r\nHost: a\r\n\r\n")
	require.Contains(t, c.heard(), "HTTP/1.1 200 ")
	c.say("GET / HTTP/1.1\r\n\r\n")
	require.Contains(t, c.heard(), "HTTP/1.1 400 ")
	require.Equal(t, act.Done, c.verdict)
}
