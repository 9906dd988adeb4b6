package nethttp

import (
	"crypto/tls"
	"net/http"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/shutdown"
)

// ListenAndServe serves h on a TCP address, "host:port", with one scheduler for each CPU. A nil h means
// http.DefaultServeMux, and "" means ":http".
//
// After SIGINT or SIGTERM it accepts no more connections. Unlike http.ListenAndServe it returns nil when all requests that
// had begun are answered and all handlers have returned, so do not pass its result to log.Fatal unchecked. After 30 s it
// returns a *shutdown.Cut, which says what was cut off. A second signal cuts off what is still open, and a third one ends
// the process. Any other error says why it cannot serve. Lines about connections and handlers that fail go to log.Default().
//
// A program with signals, contexts and time-outs of its own uses a [Server], and one with other services an [Adapter].
func ListenAndServe(address string, h http.Handler) error {
	v := &Server{Addr: address, Handler: h}
	return v.call(v.listen(":http")).untilSignal()
}

// ListenAndServeTLS is ListenAndServe with TLS: certFile has the certificate and its issuers' certificates, keyFile has its
// key, both as PEM. They are read again on SIGHUP. An empty address means ":https".
func ListenAndServeTLS(address, certFile, keyFile string, h http.Handler) error {
	v, files := &Server{Addr: address, Handler: h}, &secure.Files{Cert: certFile, Key: keyFile}
	config := &tls.Config{GetCertificate: files.GetCertificate}
	return v.call(v.listen(":https"), v.encrypts(config)).untilSignal(files.Setup)
}

func (x *call) untilSignal(setup ...func(*act.Scheduler) error) error {
	return x.run(shutdown.Policy{}, append(setup, monitor.Signals(shutdown.Policy{}))...)
}
