package main

import (
	"bufio"
	_ "embed" // centrifugo.sh
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/mqtt"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// daimon is the server of bench/topics.
type daimon struct{ to, from net.Conn }

func (*daimon) String() string { return "daimon" }

func (*daimon) process(b build.Builder, _ Options, dsn string) (server.Process, error) {
	program, err := b.Go("topics/daimon")
	return server.Process{Name: "daimon", Program: program, Reactors: 2, Flags: []string{"-dsn", dsn}}, err
}

func (d *daimon) connect(m *measurement, first, second string) (err error) {
	if d.to, err = mqtt.Dial(first, "publisher", ""); err == nil {
		d.from, err = mqtt.Dial(second, "subscriber", "#")
	}
	if err != nil {
		return err
	}
	// A machine stores when it has begun to get what others store. What they store before that does not come.
	in := bufio.NewReader(d.from)
	if _, err = d.from.Write(mqtt.Publish("ready", nil)); err == nil {
		_, err = packet(in)
	}
	if err == nil {
		err = d.from.SetReadDeadline(time.Time{}) // mqtt.Dial has set one
	}
	if err != nil {
		return err
	}
	go func() {
		for {
			data, err := packet(in)
			if err != nil {
				m.fail(err)
				return
			}
			m.hear(data)
		}
	}()
	return nil
}

// packet reads a PUBLISH packet, and returns its data.
func packet(in *bufio.Reader) (data []byte, err error) {
	_, _ = in.ReadByte() // an error comes again
	n, err := binary.ReadUvarint(in)
	body := make([]byte, n)
	if err == nil {
		_, err = io.ReadFull(in, body)
	}
	if err != nil {
		return nil, err
	}
	return body[2+binary.BigEndian.Uint16(body):], nil
}

func (d *daimon) publish(topic string, data []byte) error {
	_, err := d.to.Write(mqtt.Publish(topic, data))
	return err
}

func (d *daimon) close() {
	for _, c := range []net.Conn{d.to, d.from} {
		if c != nil {
			_ = c.Close()
		}
	}
}

// centrifugo has a request of the HTTP API for each message that is under way. The subscriber is a response without an end.
type centrifugo struct {
	m      *measurement
	client http.Client
	to     string
	from   io.Closer
}

func (*centrifugo) String() string { return "centrifugo" }

//go:embed centrifugo.sh
var script []byte

func (*centrifugo) process(b build.Builder, o Options, dsn string) (server.Process, error) {
	program := filepath.Join(b.To, "centrifugo")
	err := os.WriteFile(program, script, 0o700)
	return server.Process{Name: "centrifugo", Program: program, Reactors: 2, Flags: []string{o.Centrifugo, dsn}}, err
}

func (c *centrifugo) connect(m *measurement, first, second string) error {
	c.m, c.to = m, "http://"+first+"/api/publish"
	c.client.Transport = &http.Transport{MaxIdleConnsPerHost: m.Window}
	topics := map[string]struct{}{}
	for i := range m.Topics {
		topics[name(i)] = struct{}{}
	}
	say, err := json.Marshal(map[string]any{"subs": topics})
	if err != nil {
		return err
	}
	r, err := http.Post("http://"+second+"/connection/uni_http_stream", "application/json", strings.NewReader(string(say)))
	if err != nil {
		return err
	}
	c.from = r.Body
	in := json.NewDecoder(r.Body)
	var connected struct{ Connect struct{ Subs map[string]any } }
	if err := in.Decode(&connected); err != nil || len(connected.Connect.Subs) != m.Topics {
		return fmt.Errorf("%s: not all topics are subscribed to: %v", r.Status, err)
	}
	go func() {
		for err == nil {
			var push struct {
				Pub struct{ Data json.RawMessage }
			}
			if err = in.Decode(&push); err == nil && push.Pub.Data != nil { // or a ping
				m.hear(push.Pub.Data)
			}
		}
		m.fail(err)
	}()
	return nil
}

func (c *centrifugo) publish(topic string, data []byte) error {
	go func() {
		r, err := c.client.Post(c.to, "application/json", strings.NewReader(fmt.Sprintf(`{"channel":%q,"data":%s}`, topic, data)))
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
		if err != nil {
			c.m.fail(err)
		}
	}()
	return nil
}

func (c *centrifugo) close() {
	if c.from != nil {
		_ = c.from.Close()
	}
}
