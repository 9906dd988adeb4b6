package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// streams asks again and again over HTTP/2, until the end. It returns the first failure.
func (l *Load) streams(c Client, over <-chan struct{}) (first *Failure) {
	transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: l.TLS.Clone()}
	transport.Protocols.SetHTTP2(l.TLS != nil)
	transport.Protocols.SetUnencryptedHTTP2(l.TLS == nil)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: Patience}
	ends := make(chan *Failure)
	for range c.Streams {
		go func() {
			var f *Failure
			for f == nil && !ended(over) {
				f = l.get(c, client)
			}
			ends <- f
		}()
	}
	for range c.Streams {
		first = cmp.Or(first, <-ends)
	}
	return first
}

// get makes a request. The transport repeats what the server says that it has not begun (RFC 9113 8.7).
func (l *Load) get(c Client, client *http.Client) *Failure {
	scheme := "http://"
	if l.TLS != nil {
		scheme = "https://"
	}
	a, err := client.Get(scheme + l.Addr + c.Path)
	if dialling := (*net.OpError)(nil); errors.As(err, &dialling) && dialling.Op == "dial" {
		return &Failure{Kind: Refused, Client: c, Err: err}
	} else if err != nil {
		return &Failure{Kind: Race, Client: c, Err: err}
	}
	defer a.Body.Close()
	switch n, err := io.Copy(io.Discard, a.Body); {
	case err != nil:
		return &Failure{Kind: Cut, Client: c, Err: err}
	case a.StatusCode != http.StatusOK || n == 0:
		return &Failure{Kind: Wrong, Client: c, Err: fmt.Errorf("%w: status %d, %d bytes", errWrong, a.StatusCode, n)}
	}
	l.served.Add(1)
	return nil
}
