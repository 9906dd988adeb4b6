// This is how the chat works. What one member says, all others in the room read. A member is on a terminal, with a protocol of
// lines, or on the page, with WebSocket. The rooms are the same.
//
// A room is a topic of package topic. The topic has a history, and presence: the list of its members. A member is a task with a
// connection and a subscription.
//
//	connection ──── wishes ───▶ member ──── a line: Publish ───▶ topic of the room
//	           ◀─── events ────        ◀─── Take ───────────────  its history, who joins and leaves
//
// So all members of a room read the same lines in the same order. Each line is made once, as text for terminals and as a prepared
// message for pages. A member that does not read holds up no other: its subscription ends when maxBehind lines wait for it.
//
// A page notes the position of the last line that it has got, in the history of the room. When its connection is lost, it connects
// again, to this process or to another one, and says where it was: it gets what it has missed, and is told whether that is
// all. A line that has not come back from the room is sent again then. Each line has an identifier of the page, so that pages show
// it once, even if it was stored twice.
//
// On a shutdown request each member leaves at once: pages are closed with code 1001, and connect again. So in an upgrade
// nobody stays in a room of the old process while others talk in one of the new process.
//
// Each coming and going is told to the others only in rooms of up to a hundred members. In a larger one pages ask for the
// number of members, and a hundred names, now and then.

package main

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/topic"
	"github.com/daimon-go/daimon/topic/postgres"
)

const (
	// history is how many lines of a room are kept, for an hour. It is more than maxBehind, so a member that was too slow may recover.
	history = 500
	// maxBehind is how many lines may wait for a member.
	maxBehind = 250
)

// Chat has the rooms. It is a service, which is used by one Group, together with services that accept the members'
// connections: their handlers are Member, and that of a web server Site.
type Chat struct {
	database string // of PostgreSQL, in which other processes have the same rooms; empty: there are none
	engine   *postgres.Engine
	topics   *topic.Broker
	peers    []string      // further addresses of the page, for when this one is gone
	every    time.Duration // a member that says more than one line in that time, after the first ones, is too fast; 0: none is
	random   io.Reader     // for the identifiers of terminals
}

// New returns a Chat without rooms.
func New() *Chat { return &Chat{every: time.Second / 2, random: rand.Reader} }

// Setup is a set-up function. It opens the database, so it comes after set-up functions that may fail, above all those of the
// services that listen.
func (c *Chat) Setup(s *act.Scheduler) error {
	if s.Index() == 0 {
		cfg := topic.Config{Rules: []topic.Rule{{Filter: topicOf("+"), History: history, Presence: true}}}
		if c.database != "" {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var err error
			if c.engine, err = postgres.Open(ctx, c.database, postgres.Options{Logger: s.Logger()}); err != nil {
				return err
			}
			cfg.Engine = c.engine
		}
		c.topics = topic.New(cfg)
	}
	return c.topics.Setup(s)
}

// Close closes the database.
func (c *Chat) Close() error {
	if c.engine == nil {
		return nil
	}
	return c.engine.Close()
}

// topicOf returns the topic of a room, and presenceOf the topic of its comings and goings. A room has no name with / + or #.
func topicOf(room string) string    { return "chat/" + room }
func presenceOf(room string) string { return "$presence/" + topicOf(room) }
