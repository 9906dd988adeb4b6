// Command broadcast is the measured server of Daimon for messages that go to all connections at /broadcast: each message is
// prepared once, posted to all schedulers, and pushed to the connections of each.
package main

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
)

func main() {
	sockets := &websocket.Server{Handler: join}
	site := &httpd.Mux{}
	site.Handle("/broadcast", sockets.Serve)
	web := &httpd.Server{Handler: site.Serve}
	program.Serve("127.0.0.1:8080", web.Serve)
}

// members are the connections of a scheduler.
type members struct{ all []*member }

var membersOf = act.NewLocal(func(*act.Scheduler) *members { return &members{} })

type member struct {
	conn  *websocket.Conn
	of    *members
	index int
	post  func(*act.Scheduler) // waits for room in the inboxes; nil: none does
}

func join(c *websocket.Conn, r *httpd.Request) act.Action {
	of := membersOf.Get(r.Conn().Scheduler())
	m := &member{conn: c, of: of, index: len(of.all)}
	of.all = append(of.all, m)
	return m
}

func (m *member) Act(t *act.Task) act.Directive {
	for {
		if m.post == nil {
			message, err := m.conn.Receive()
			if err != nil {
				return m.conn.Next(t, err)
			}
			m.post = pushed(websocket.Prepare(message.Type, message.Data))
		}
		if err := t.Scheduler().Group().Broadcast(m.post); err != nil {
			return listener.Next(t, err)
		}
		m.post = nil
	}
}

// pushed pushes a message to all members of a scheduler.
func pushed(p *websocket.Prepared) func(*act.Scheduler) {
	return func(s *act.Scheduler) {
		for _, m := range membersOf.Get(s).all {
			if _, slow := m.conn.Push(p).(act.Blocked); slow { // the action hears of another error
				m.conn.Close(websocket.CodePolicy, "too slow")
			}
		}
	}
}

// Close leaves. The last one takes the place.
func (m *member) Close() error {
	all := m.of.all
	last := all[len(all)-1]
	all[m.index], last.index = last, m.index
	m.of.all = all[:len(all)-1]
	return nil
}
