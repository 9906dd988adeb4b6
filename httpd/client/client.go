package client

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
)

// Client finds the Origins of URLs, and bounds several Origins together. The zero Client is ready. Its fields must not be
// changed, and it must not be copied, once it is used. Any goroutine may call its methods.
type Client struct {
	// MaxConns bounds the connections of all Origins on all schedulers; 0 means no bound. For a Call that finds no place an idle
	// connection of another Origin is closed.
	MaxConns int
	// MaxOrigins bounds the Origins that Origin keeps; 0 means 1024. Beyond it, the one that was not asked for during the longest
	// time is closed, of those without connections if there are any.
	MaxOrigins int
	// TLS configures the Origins of https; nil means an empty configuration.
	TLS *tls.Config
	// Timeouts are for all Origins.
	Timeouts Timeouts
	// Prepare, if not nil, is called with each Origin that is made, and may set further fields. It must not use the Client.
	Prepare func(o *Origin)

	places
	finding sync.Mutex
	origins map[name]*known
	clock   uint64 // calls of Origin
}

// name is what a URL says of its Origin.
type name struct {
	scheme, host string // in lower case, without the port that is the default
}

// known is an Origin that is kept.
type known struct {
	*Origin
	asked uint64 // by Client.clock
}

const standardOrigins = 1024

// Origin returns the Origin of URLs with this scheme, "http" or "https", and this host, "host", "host:port" or "[::1]:port": see
// url.URL in package net/url. It makes the Origin the first time. Do not keep it: one that nobody asks for may be closed. An
// error says what is wrong with the URL.
func (c *Client) Origin(scheme, host string) (*Origin, error) {
	at := name{strings.ToLower(scheme), strings.ToLower(host)}
	port := ports[at.scheme]
	if port == "" {
		return nil, fmt.Errorf("client: the scheme of a URL is neither http nor https: %q", scheme)
	}
	at.host = strings.TrimSuffix(strings.TrimSuffix(at.host, ":"+port), ":")
	o, old, err := c.find(at, port)
	if old != nil {
		old.Close() // not while the Client is locked
	}
	return o, err
}

// find finds or makes an Origin, and returns the one that has to make room for it, or nil.
func (c *Client) find(at name, port string) (o, old *Origin, err error) {
	c.finding.Lock()
	defer c.finding.Unlock()
	c.clock++
	if k := c.origins[at]; k != nil {
		k.asked = c.clock
		return k.Origin, nil, nil
	}
	if o, err = c.origin(at, port); err != nil {
		return nil, nil, err
	}
	if c.origins == nil {
		c.origins = map[name]*known{}
	}
	if len(c.origins) >= most(c.MaxOrigins, standardOrigins, 1) {
		old = c.forget()
	}
	c.origins[at] = &known{o, c.clock}
	return o, old, nil
}

var ports = map[string]string{"http": "80", "https": "443"}

// origin makes an Origin.
func (c *Client) origin(at name, port string) (*Origin, error) {
	address := at.host
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), port)
	}
	o := &Origin{Address: address, Host: at.host, Timeouts: c.Timeouts, Client: c}
	if at.scheme == "https" {
		if o.TLS = c.TLS; o.TLS == nil {
			o.TLS = &tls.Config{}
		}
	}
	if c.Prepare != nil {
		c.Prepare(o)
	}
	return o, o.prepare()
}

// forget takes out the Origin that is least likely to be used again.
func (c *Client) forget() *Origin {
	var at name
	var oldest *known
	for p, k := range c.origins {
		if oldest == nil || k.before(oldest) {
			at, oldest = p, k
		}
	}
	delete(c.origins, at)
	return oldest.Origin
}

func (k *known) before(other *known) bool {
	mine, theirs := k.taken.Load() > 0, other.taken.Load() > 0
	if mine != theirs {
		return theirs
	}
	return k.asked < other.asked
}

// CloseIdle closes the connections without a request of all Origins, soon.
func (c *Client) CloseIdle() {
	c.finding.Lock()
	all := slices.Collect(maps.Values(c.origins))
	c.finding.Unlock()
	for _, k := range all {
		k.CloseIdle()
	}
}
