package press

import (
	"errors"
	"fmt"

	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/stage"
)

// maxQueue bounds the jobs of a customer that are not typeset yet.
const maxQueue = 100

var errBusy = errors.New("press: too many jobs of one customer")

// customer is a process. The jobs of one customer are typeset one after the other, in the order of arrival; those of
// different customers in parallel.
type customer struct {
	shop  *Shop
	name  string
	queue []submit // not typeset yet; the first is under way

	set     int // jobs
	printed int
}

// message is a message to a customer.
type message interface {
	at(c *customer, p *process.Self[message])
}

func (c *customer) receive(p *process.Self[message], m message) { m.at(c, p) }

// submit is a new job. The answer is sent when it is typeset.
type submit struct {
	text  string
	reply process.Reply[stage.ID]
}

func (m submit) at(c *customer, p *process.Self[message]) {
	if len(c.queue) == maxQueue {
		m.reply.Fail(p, errBusy)
		return
	}
	if c.queue = append(c.queue, m); len(c.queue) == 1 {
		c.next(p)
	}
}

// next typesets the first job of the queue, off the thread.
func (c *customer) next(p *process.Self[message]) {
	shop, name, text := c.shop, c.name, c.queue[0].text
	process.Offload(p, func() (stage.ID, error) { return shop.set(name, text) },
		func(id stage.ID, err error) message { return isSet{id, err} })
}

// isSet is the result.
type isSet struct {
	id  stage.ID
	err error
}

func (m isSet) at(c *customer, p *process.Self[message]) {
	if m.err != nil {
		c.queue[0].reply.Fail(p, m.err)
	} else {
		c.set++
		c.queue[0].reply.Send(p, m.id)
	}
	if c.queue = c.queue[1:]; len(c.queue) > 0 {
		c.next(p)
	}
}

// isPrinted comes from the press, once for each job.
type isPrinted struct{}

func (isPrinted) at(c *customer, _ *process.Self[message]) { c.printed++ }

// account asks for the state of the customer's jobs.
type account struct{ reply process.Reply[string] }

func (m account) at(c *customer, p *process.Self[message]) {
	m.reply.Send(p, fmt.Sprintf("%s: to be set: %d, set: %d, printed: %d", c.name, len(c.queue), c.set, c.printed))
}
