package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/httpd/gateway"
	"github.com/pelletier/go-toml/v2"
)

// The file as gateway.toml explains it. Package gateway checks what the keys mean.
type (
	config struct {
		Name             string
		Trust, Forwarded bool
		Groups           []group
		Routes           []gateway.Route
	}

	group struct {
		Name, Key string
		Policy    gateway.Policy
		Failures  []int
		Retries   *int
		MaxOut    int `toml:"max_out"`
		Health    health
		Backends  []backend
	}

	health struct {
		Path                           string
		Failures, Fall, Rise           int
		Out, Return, Interval, Timeout string
	}

	backend struct {
		Address, Host string
		TLS           *security
		HTTP2         bool
		Weight, Proxy int
		MaxConns      int    `toml:"max_conns"`
		MaxIdle       int    `toml:"max_idle"`
		MaxWaiting    int    `toml:"max_waiting"`
		IdleTimeout   string `toml:"idle_timeout"`
		Timeouts      struct{ Wait, Connect, Head, Idle, Total string }
	}

	security struct {
		Name, CA string
		Skip     bool `toml:"skip_verify"`
	}
)

// files reads the file, and the certificates that it names.
type files struct {
	path string
	tls  map[string]*tls.Config // by what they were made of, so that a back end that has not changed is the same
}

// read makes a Table. An error has a line for each mistake, with the line of the file that it is in.
func (f *files) read() (*gateway.Table, error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return nil, err
	}
	var c config
	err = toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&c)
	var made gateway.Config
	if err == nil {
		made, err = f.convert(&c)
	}
	var table *gateway.Table
	if err == nil {
		table, err = gateway.NewTable(made)
	}
	return table, f.mistakes(err, text)
}

// mistakes adds the line to each error, if there is one.
func (f *files) mistakes(err error, text []byte) error {
	var all []error
	var unknown *toml.StrictMissingError
	var syntax *toml.DecodeError
	var m *gateway.Mistake
	line := func(n int, what any) { all = append(all, fmt.Errorf("%s:%d: %v", f.path, n, what)) }
	switch several, is := err.(interface{ Unwrap() []error }); {
	case errors.As(err, &unknown):
		for _, e := range unknown.Errors {
			n, _ := e.Position()
			line(n, "unknown key "+strings.Join(e.Key(), "."))
		}
	case errors.As(err, &syntax):
		n, _ := syntax.Position()
		line(n, strings.TrimPrefix(syntax.Error(), "toml: "))
	case is:
		for _, e := range several.Unwrap() {
			all = append(all, f.mistakes(e, text))
		}
	case errors.As(err, &m):
		line(lineOf(text, m.Path), err)
	default:
		return err
	}
	return errors.Join(all...)
}

// convert makes the values of package gateway.
func (f *files) convert(c *config) (made gateway.Config, err error) {
	made = gateway.Config{Name: c.Name, Trust: c.Trust, Forwarded: c.Forwarded, Routes: c.Routes}
	var all []error
	for i, g := range c.Groups {
		span := func(text, key string) time.Duration { // "" is the default
			d, err := time.ParseDuration(cmp.Or(text, "0"))
			if err == nil && d <= 0 && text != "" {
				err = fmt.Errorf("not above 0: %v", d)
			}
			if err != nil {
				all = append(all, &gateway.Mistake{Path: fmt.Sprintf("groups[%d].%s", i, key), Err: err})
			}
			return d
		}
		h := &g.Health
		to := gateway.Group{Name: g.Name, Policy: g.Policy, Key: g.Key, Failures: g.Failures, MaxOut: g.MaxOut}
		to.Health = gateway.Health{Failures: h.Failures, Out: span(h.Out, "health.out"), Return: span(h.Return, "health.return"), Path: h.Path,
			Interval: span(h.Interval, "health.interval"), Timeout: span(h.Timeout, "health.timeout"), Fall: h.Fall, Rise: h.Rise}
		if g.Retries != nil {
			to.Retries = cmp.Or(*g.Retries, -1)
		}
		for j, b := range g.Backends {
			at := fmt.Sprintf("backends[%d].", j)
			t, times := b.Timeouts, at+"timeouts."
			x := gateway.Backend{Address: b.Address, Host: b.Host, Weight: b.Weight, Proxy: b.Proxy, MaxConns: b.MaxConns,
				MaxIdle: b.MaxIdle, MaxWaiting: b.MaxWaiting, IdleTimeout: span(b.IdleTimeout, at+"idle_timeout"), Timeouts: client.Timeouts{
					Wait: span(t.Wait, times+"wait"), Connect: span(t.Connect, times+"connect"), Head: span(t.Head, times+"head"),
					Idle: span(t.Idle, times+"idle"), Total: span(t.Total, times+"total")}}
			if x.Protocol = client.HTTP1; b.HTTP2 {
				x.Protocol = client.HTTP2
			}
			if b.TLS != nil {
				var err error
				if x.TLS, err = f.security(*b.TLS); err != nil {
					all = append(all, &gateway.Mistake{Path: fmt.Sprintf("groups[%d].%stls.ca", i, at), Err: err})
				}
			}
			to.Backends = append(to.Backends, x)
		}
		made.Groups = append(made.Groups, to)
	}
	return made, errors.Join(all...)
}

// security returns the configuration of TLS.
func (f *files) security(s security) (*tls.Config, error) {
	cfg := &tls.Config{ServerName: s.Name, InsecureSkipVerify: s.Skip}
	var ca []byte
	if s.CA != "" {
		var err error
		if ca, err = os.ReadFile(s.CA); err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("no certificate in %s", s.CA)
		}
	}
	key := fmt.Sprintf("%q %v %s", s.Name, s.Skip, ca)
	if same := f.tls[key]; same != nil {
		return same, nil
	}
	if f.tls == nil {
		f.tls = map[string]*tls.Config{}
	}
	f.tls[key] = cfg
	return cfg, nil
}
